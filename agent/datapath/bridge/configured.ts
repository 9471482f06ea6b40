import { type Cluster, clusterNetworks } from "../../cluster/cluster.ts";
import type { AgentConfig } from "../../config/agent-config.ts";
import type { BridgeCluster } from "./other-nodes.ts";

/** The registry gives this node a subnet of the first network alone. */
export function bridgeClusterOf(config: AgentConfig, { linkAddresses, peers }: Cluster): BridgeCluster {
  const networks = clusterNetworks(config);
  return {
    network: config.networks[0]?.name ?? "",
    nodeAddresses: linkAddresses,
    peers,
    ...(networks === undefined ? {} : { networks }),
  };
}
