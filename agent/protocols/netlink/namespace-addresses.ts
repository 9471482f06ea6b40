import { fstatSync, readdirSync } from "node:fs";
import { formatIp } from "../../../shared/net/ip.ts";
import { listAddresses, readAddress } from "./address.ts";
import { Kernel } from "./kernel.ts";
import { listLinks, readLink } from "./link.ts";
import type { NetlinkSocket } from "./netlink-socket.ts";

/** Where runtimes keep the network namespaces of their sandboxes, by name. */
const directories = ["/run/netns", "/run/docker/netns"];

/**
 * Every address in every named network namespace of the node, as text. Other files, and namespaces that disappear
 * meanwhile, are skipped.
 * @throws {NetlinkError} where the kernel refuses
 */
export async function addressesInNamespaces(): Promise<ReadonlySet<string>> {
  const found = new Set<string>();
  inNamespaces((_path, socket) => {
    for (const { address } of socket.dump(listAddresses(0), readAddress)) found.add(formatIp(address.ip));
  });
  return found;
}

/** A network namespace that is made for a sandbox and in which nothing but the loopback interface is up. */
export interface BareNamespace {
  readonly path: string;
  /** Tells it from a later one of its name. */
  readonly inode: string;
}

/** The names that containerd, podman and CRI-O use; other namespaces are ignored. */
const ofSandbox = /\/(cni-|netns-)?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** @throws {NetlinkError} where the kernel refuses */
export function bareNamespaces(): readonly BareNamespace[] {
  const found: BareNamespace[] = [];
  inNamespaces((path, socket, inode) => {
    const isBare = (): boolean => socket.dump(listLinks(), readLink).every(({ up, name }) => !up || name === "lo");
    if (ofSandbox.test(path) && isBare()) found.push({ path, inode });
  });
  return found;
}

function inNamespaces(look: (path: string, socket: NetlinkSocket, inode: string) => void): void {
  using kernel = new Kernel();
  for (const path of directories.flatMap(entriesOf)) {
    const opened = kernel.namespaceAt(path);
    if (opened.t === "refused")
      throw new Error(`Cannot look into the network namespace "${path}": ${opened.reason}, wanted to open it`);
    if (opened.t !== "open") continue;
    using namespace = opened.namespace;
    using socket = kernel.openSocketIn(namespace);
    look(path, socket, String(fstatSync(namespace.fd, { bigint: true }).ino));
  }
}

function entriesOf(directory: string): readonly string[] {
  try {
    return readdirSync(directory).map((name) => `${directory}/${name}`);
  } catch {
    return []; // No runtime has made it.
  }
}
