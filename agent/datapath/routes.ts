import type { CniResult, CniRoute } from "../../shared/cni/types.ts";
import { CniCode, CniError } from "../../shared/errors.ts";
import { type Cidr, formatCidr, formatIp, type Ip } from "../../shared/net/ip.ts";

/** Where a route leads: its own gateway, else the gateway of the first address of its family that has one. */
export function gatewayOf(route: CniRoute, ips: CniResult["ips"]): Ip | undefined {
  if (route.gw !== undefined) return route.gw;
  return ips.find((ip) => ip.address.ip.family === route.dst.ip.family && ip.gateway !== undefined)?.gateway;
}

/** Where the node sends packets for other nodes' pods and for services. */
export interface NodeRoute {
  readonly dst: Cidr;
  readonly via: Ip;
  /**
   * `gateway`: on the gateway port, where `via` is a neighbour by declaration. `encrypted`: on the device that encrypts,
   * which goes by the packet's own destination. `transport`: as the node reaches `via`.
   */
  readonly by: "gateway" | "encrypted" | "transport";
  /** What the node's own packets have as source. */
  readonly source?: Ip;
  /** Hardware address of `via` where nobody answers for it. */
  readonly mac?: string;
}

/** A route that the system refuses, and its reason. */
export interface RefusedRoute {
  readonly route: NodeRoute;
  readonly why: string;
}

export const refusedRoute = ({ route: { dst, via }, why }: RefusedRoute): CniError =>
  new CniError(
    CniCode.interfaceFailure,
    `Cannot set the route to ${formatCidr(dst)} by way of ${formatIp(via)}: the node refuses it (${why})`,
  );
