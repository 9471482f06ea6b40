import type { Live } from "../../shared/async/live-value.ts";
import type { Cidr } from "../../shared/net/ip.ts";
import type { ClusterNode, TenantRegistry } from "./node-registry.ts";

/** What a data path gets to know of the cluster that its node has joined. */
export interface Cluster {
  /** This node, as the registry has it. */
  readonly self: ClusterNode;
  /** Its addresses with the length of their network's prefix; without what no interface of the node has. */
  readonly linkAddresses: readonly Cidr[];
  /** All other nodes by name. Never two with one address or with subnets that overlap. */
  readonly peers: Live<ReadonlyMap<string, ClusterNode>>;
  /** `undefined` where the registry keeps none. */
  readonly tenants: TenantRegistry | undefined;
}
