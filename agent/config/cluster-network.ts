import type { Cidr } from "../../shared/net/ip.ts";

/** A network whose subnets nodes get. */
export interface ClusterNetwork {
  readonly cidr: Cidr;
  /** Of each subnet: 9 makes IPv4 subnets of 512 addresses (/23). */
  readonly hostBits: number;
}
