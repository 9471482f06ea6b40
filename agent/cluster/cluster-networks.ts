import type { Cidr } from "../../shared/net/ip.ts";
import type { AgentConfig } from "../config/agent-config.ts";

/** What the registry leases nodes' subnets of, where it says so: that never changes with the nodes. */
export function clusterNetworks({ nodes }: Pick<AgentConfig, "nodes">): readonly Cidr[] | undefined {
  const registry = nodes?.registry;
  return registry !== undefined && "networks" in registry ? registry.networks.map(({ cidr }) => cidr) : undefined;
}
