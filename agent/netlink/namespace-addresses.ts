import { readdirSync } from "node:fs";
import { formatIp } from "../../shared/ip.ts";
import { listAddresses, readAddress } from "./address.ts";
import { Kernel } from "./kernel.ts";

/** Where runtimes keep the network namespaces of their sandboxes, by name. */
const directories = ["/run/netns", "/run/docker/netns"];

/**
 * Every address in every named network namespace of the node, as text. What is no namespace, or goes meanwhile, is
 * passed over.
 * @throws {NetlinkError} where the kernel refuses
 */
export async function addressesInNamespaces(): Promise<ReadonlySet<string>> {
  using kernel = new Kernel();
  const found = new Set<string>();
  for (const path of directories.flatMap(entriesOf)) {
    const opened = kernel.namespaceAt(path);
    if (opened.t === "refused")
      throw new Error(`Cannot look into the network namespace "${path}": ${opened.reason}, wanted to open it`);
    if (opened.t !== "open") continue;
    using namespace = opened.namespace;
    using socket = kernel.openSocketIn(namespace);
    for (const { address } of socket.dump(listAddresses(0), readAddress)) found.add(formatIp(address.ip));
  }
  return found;
}

function entriesOf(directory: string): readonly string[] {
  try {
    return readdirSync(directory).map((name) => `${directory}/${name}`);
  } catch {
    return []; // No runtime has made it.
  }
}
