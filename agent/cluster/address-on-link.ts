import { type Cidr, contains, type Family, type Ip } from "../../shared/net/ip.ts";
import type { ClusterNode } from "./node-registry.ts";

/**
 * Another node's address of this family in a network that this node is in too: what is sent there needs no router.
 * @param own this node's, with the length of their network's prefix
 */
export const addressOnLink = (
  own: readonly Cidr[],
  { addresses }: Pick<ClusterNode, "addresses">,
  family: Family,
): Ip | undefined => addresses.find((ip) => ip.family === family && own.some((network) => contains(network, ip)));
