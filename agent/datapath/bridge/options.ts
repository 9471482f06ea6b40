import type { Owner } from "../../../shared/cni/types.ts";
import type { Logger } from "../../../shared/log.ts";
import type { Cidr, Ip } from "../../../shared/net/ip.ts";
import type { Cluster } from "../../cluster/cluster.ts";
import { clusterNetworks } from "../../cluster/cluster.ts";
import type { AgentConfig } from "../../config/agent-config.ts";
import type { BridgeCluster } from "./other-nodes.ts";
import type { ServiceOptions } from "./services/service-chains.ts";

/** One network on this node: a kernel bridge that carries the gateway addresses. */
export interface BridgeNetwork {
  /** `name` of the network configuration. */
  readonly name: string;
  /** One block per family at most; the first address of each is the gateway, on the bridge. */
  readonly subnets: readonly Cidr[];
  /** Interface name of the bridge: made when missing, taken when it is a bridge already. */
  readonly bridge: string;
  /** Bytes, of the bridge and of pods whose request names none; 1500 when absent. */
  readonly mtu?: number;
  /** Lets a pod reach itself by way of a service address: frames may leave by the port that they came from. */
  readonly hairpin: boolean;
  /** Hides pod addresses behind the node's own on the way out of the network. */
  readonly masquerade: boolean;
}

export interface BridgeDataPathOptions {
  readonly networks: readonly BridgeNetwork[];
  /** Where the node is one of many. */
  readonly cluster?: BridgeCluster;
  /** Absent: others balance services. */
  readonly services?: ServiceOptions;
  /** Addresses that the owner has by our own allocator; none where another IPAM plugin keeps them. */
  leasedTo(owner: Owner): readonly Ip[];
  readonly logger: Logger;
}

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
