import { createBridgeDataPath } from "../../../agent/datapath/bridge/bridge-datapath.ts";
import type { BridgeDataPathOptions, BridgeNetwork } from "../../../agent/datapath/bridge/options.ts";
import type { AttachRequest, DataPath } from "../../../agent/datapath/datapath.ts";
import { Kernel } from "../../../agent/protocols/netlink/mod.ts";
import type { CniResult } from "../../../shared/cni/types.ts";
import { CniError } from "../../../shared/errors.ts";
import { createLogger } from "../../../shared/log.ts";
import { type Cidr, parseCidr } from "../../../shared/net/ip.ts";
import { NodeInMemory, present } from "./kernel.ts";
import type { LinkInMemory, NamespaceInMemory } from "./namespace.ts";

/**
 * A bridge data path on a node in memory. Whoever uses it puts kernel.ts, host-files.ts and the
 * node's `nft` in the place of the real ones.
 */

/** What the data path has logged at `warn` or above. */
export const lines: string[] = [];

/** Before each test. */
export function freshNode(): void {
  if (!("isInMemory" in Kernel)) throw new Error("Broken invariant: the kernel of this machine would be asked");
  present.node = new NodeInMemory();
  lines.length = 0;
}

export const cidr = (text: string): Cidr => {
  const parsed = parseCidr(text);
  if (parsed === undefined) throw new Error(`Not a block: ${text}`);
  return parsed;
};
export const network: BridgeNetwork = {
  name: "pods",
  subnets: [cidr("10.77.0.0/24"), cidr("fd77::/64")],
  bridge: "br0",
  hairpin: false,
  masquerade: true,
};
export const ownerOf = (sandboxId: string, name = "pods") => ({ network: name, sandboxId, ifname: "eth0" });

export function open(changes: Partial<BridgeNetwork> = {}, options: Partial<BridgeDataPathOptions> = {}): DataPath {
  return createBridgeDataPath({
    networks: [{ ...network, ...changes }],
    leasedTo: () => [],
    logger: createLogger("warn", (line) => lines.push(line)),
    ...options,
  });
}

export async function started(changes: Partial<BridgeNetwork> = {}, options: Partial<BridgeDataPathOptions> = {}) {
  const dataPath = open(changes, options);
  await dataPath.start();
  return dataPath;
}

export function requestFor(sandboxId: string, host: number, changes: Partial<AttachRequest> = {}): AttachRequest {
  const netns = `/run/netns/${sandboxId}`;
  if (!present.node.pods.has(netns)) present.node.addPod(netns);
  const ips = [`10.77.0.${host}/24`, `fd77::${host}/64`].map(cidr).map((address) => ({ address }));
  const ipam: CniResult = { interfaces: [], ips, routes: [{ dst: cidr("0.0.0.0/0") }], dns: {} };
  return {
    owner: ownerOf(sandboxId),
    container: { id: sandboxId, netns, kind: { t: "sandbox" } },
    ownLease: true,
    pod: { namespace: "default", name: `web-${sandboxId}`, uid: "" },
    ipam,
    ...changes,
  };
}

/** The host's end of a pod's pair. */
export function hostOf(sandboxId: string): LinkInMemory {
  const alias = `:pods:${sandboxId}:eth0`;
  const found = [...present.node.own.links.values()].find((link) => link.alias.endsWith(alias));
  if (found === undefined) throw new Error(`The pod "${sandboxId}" has no interface on the node`);
  return found;
}

export function podOf(sandboxId: string): NamespaceInMemory {
  const found = present.node.pods.get(`/run/netns/${sandboxId}`);
  if (found === undefined) throw new Error(`There is no pod "${sandboxId}"`);
  return found;
}

export function bridge(): LinkInMemory {
  const found = present.node.own.named("br0");
  if (found === undefined) throw new Error("There is no bridge");
  return found;
}

export const problems = async (dataPath: DataPath): Promise<readonly string[]> =>
  (await dataPath.problems()).map(({ code, message }) => `${code} ${message}`);

/** What `work` failed with. */
export async function failing(work: Promise<unknown>): Promise<string> {
  const caught = await work.then(
    () => new Error("It succeeded"),
    (error: unknown) => error,
  );
  if (!(caught instanceof CniError)) throw caught;
  return `${caught.code} ${caught.message}`;
}
