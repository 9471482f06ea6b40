import { formatIp, type Ip, parseIp } from "../../../shared/net/ip.ts";
import { readKnownNodes } from "../../cluster/registry-cache.ts";

/** What the agent of this node last heard of the cluster, as far as a trace has use for it. */
export interface KnownNodes {
  /** This node's own; none where it has joined no cluster. */
  readonly own: readonly Ip[];
  /** The node with this address; `undefined` where nobody knows. */
  nameOf(address: string): string | undefined;
}

/** From the agent's own file, which need not be there: names only make a trace easier to read. */
export function knownNodesIn(dataDir: string): KnownNodes {
  const { self, nodes } = readKnownNodes(dataDir);
  const names = new Map(nodes.flatMap(({ name, addresses }) => addresses.map((ip) => [formatIp(ip), name] as const)));
  return {
    own: self?.addresses ?? [],
    nameOf: (address) => {
      const ip = parseIp(address);
      return ip === undefined ? undefined : names.get(formatIp(ip));
    },
  };
}
