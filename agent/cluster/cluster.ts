import type { Live } from "../../shared/async/live-value.ts";
import { type Cidr, contains, type Family, type Ip } from "../../shared/net/ip.ts";
import type { AgentConfig } from "../config/agent-config.ts";
import type { ClusterNode, TenantRegistry } from "./node-registry.ts";

/** The cluster that the node has joined, as a data path sees it. */
export interface Cluster {
  /** This node, as the registry has it. */
  readonly self: ClusterNode;
  /** Its addresses that an interface of the node has, with their network's prefix length. */
  readonly linkAddresses: readonly Cidr[];
  /** All other nodes by name. Never two with one address or with subnets that overlap. */
  readonly peers: Live<ReadonlyMap<string, ClusterNode>>;
  /** `undefined` where the registry keeps none. */
  readonly tenants: TenantRegistry | undefined;
  /** Registers the node once more, with what it says of itself now. @throws {CniError} as the registry's `register` */
  announce(): Promise<void>;
}

/**
 * Another node's address of this family in a network of this node, which is reached without a router.
 * @param own this node's, with the length of their network's prefix
 */
export const addressOnLink = (
  own: readonly Cidr[],
  { addresses }: Pick<ClusterNode, "addresses">,
  family: Family,
): Ip | undefined => addresses.find((ip) => ip.family === family && own.some((network) => contains(network, ip)));

/**
 * The networks that the registry leases nodes' subnets from, if they are configured; they do not change with the nodes.
 */
export function clusterNetworks({ nodes }: Pick<AgentConfig, "nodes">): readonly Cidr[] | undefined {
  const registry = nodes?.registry;
  return registry !== undefined && "networks" in registry ? registry.networks.map(({ cidr }) => cidr) : undefined;
}
