import { randomUUID } from "node:crypto";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { CniCode, CniError } from "../../shared/errors.ts";
import { type Cidr, type Ip, parseCidr, parseIp, sameIp } from "../../shared/net/ip.ts";
import { interfaceMac } from "../../shared/net/mac.ts";
import { writeOnce } from "../../shared/os/atomic-file.ts";
import { isWindows } from "../../shared/os/platform.ts";
import { show } from "../../shared/schema/json-fields.ts";
import type { AgentConfig } from "../config/agent-config.ts";

/** The addresses at which this node is reached, and their interface. */
export interface OwnAddresses {
  readonly addresses: readonly Ip[];
  /** Absent where the interface has none, or no interface of the node has the addresses. */
  readonly mac?: string;
  /** Those of the addresses that an interface has, with their network's prefix length. */
  readonly linkAddresses: readonly Cidr[];
}

/** The configured addresses, if any; on Windows the HNS network has one. */
export function configuredAddresses({ dataPath, networks, nodes }: AgentConfig): readonly Ip[] {
  const said = nodes?.addresses ?? [];
  const hns = dataPath === "hns" ? networks[0]?.hns : undefined;
  return said.length === 0 && hns !== undefined ? [hns.nodeAddress] : said;
}

/**
 * @param wanted the configured addresses, if any; empty: those of the interface of the default route, which only works
 * on Linux
 * @throws {CniError} code 11 where there is none, as on a node whose network is not up yet
 */
export async function findOwnAddresses(wanted: readonly Ip[]): Promise<OwnAddresses> {
  const held = isWindows ? heldOnWindows() : await heldOnLinux();
  if (wanted.length > 0) {
    const found = wanted.flatMap((ip) => held.find(({ cidr }) => sameIp(cidr.ip, ip)) ?? []);
    return { addresses: wanted, linkAddresses: found.map(({ cidr }) => cidr), ...macOf(found) };
  }
  const name = isWindows ? undefined : await defaultInterface();
  const usable = held.filter((entry) => entry.name === name && !entry.internal && !isLinkLocal(entry.cidr.ip));
  const found = ([4, 6] as const).flatMap((family) => usable.find(({ cidr }) => cidr.ip.family === family) ?? []);
  if (found.length > 0) {
    const linkAddresses = found.map(({ cidr }) => cidr);
    return { addresses: linkAddresses.map(({ ip }) => ip), linkAddresses, ...macOf(found) };
  }
  const is =
    name === undefined ? "there is no default route" : `"${name}", where the default route leads, has no address`;
  throw new CniError(
    CniCode.tryAgainLater,
    `Cannot find this node's address: ${is}, wanted one, or "nodes.addresses" in the configuration`,
  );
}

/** An address of an interface. */
interface Held {
  readonly name: string;
  readonly internal: boolean;
  readonly mac: string | undefined;
  readonly cidr: Cidr;
}

function heldOnWindows(): readonly Held[] {
  return Object.entries(networkInterfaces()).flatMap(([name, entries = []]) =>
    entries.flatMap(({ cidr: text, mac, internal }) => {
      const cidr = parseCidr(text ?? "");
      return cidr === undefined ? [] : [{ name, internal, mac: interfaceMac(mac), cidr }];
    }),
  );
}

/** Asks the kernel, because `os` omits interfaces without carrier, such as a bridge whose switch is starting. */
async function heldOnLinux(): Promise<readonly Held[]> {
  const { Kernel, listAddresses, listLinks, readAddress, readLink } = await import("../protocols/netlink/mod.ts");
  using kernel = new Kernel();
  using socket = kernel.openSocket();
  const links = new Map(socket.dump(listLinks(), readLink).map((link) => [link.index, link]));
  return socket.dump(listAddresses(everyInterface), readAddress).flatMap(({ index, address }) => {
    const link = links.get(index);
    if (link === undefined) return [];
    return [{ name: link.name, internal: link.name === "lo", mac: interfaceMac(link.mac), cidr: address }];
  });
}

const everyInterface = 0;

function macOf(entries: readonly { readonly mac: string | undefined }[]): { readonly mac?: string } {
  const mac = entries.find((entry) => entry.mac !== undefined)?.mac;
  return mac === undefined ? {} : { mac };
}

const linkLocal4 = parseIp("169.254.0.0");
const isLinkLocal = ({ family, value }: Ip): boolean =>
  family === 6 ? value >> 118n === 0xfe80n >> 6n : value >> 16n === (linkLocal4?.value ?? 0n) >> 16n;

/** The kernel lists routes of one block by their metric. */
async function defaultInterface(): Promise<string | undefined> {
  const { Kernel, listLinks, listRoutes, readLink, readRoute } = await import("../protocols/netlink/mod.ts");
  using kernel = new Kernel();
  using socket = kernel.openSocket();
  for (const family of [4, 6] as const) {
    const routes = socket.dump(listRoutes(family), readRoute);
    const index = routes.find(({ dst, table }) => dst.prefix === 0 && table === mainTable)?.hops[0]?.index;
    const link = socket.dump(listLinks(), readLink).find((candidate) => candidate.index === index);
    if (link !== undefined) return link.name;
  }
  return undefined;
}

const mainTable = 254;

const pattern = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/**
 * A uid that tells this machine from another one of the same name: created once, and kept in the data directory.
 * @throws {CniError} code 5
 */
export function nodeUid(dataDir: string): string {
  const path = join(dataDir, "node-uid");
  const text = writeOnce(path, `${randomUUID()}\n`).trim();
  if (pattern.test(text)) return text;
  throw new CniError(
    CniCode.io,
    `Cannot tell which node this is: "${path}" holds ${show(text)}, wanted a UUID; without the file the node joins as a new one`,
  );
}
