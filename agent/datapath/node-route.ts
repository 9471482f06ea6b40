import { CniCode, CniError } from "../../shared/errors.ts";
import { type Cidr, formatCidr, formatIp, type Ip } from "../../shared/net/ip.ts";

/** Where the node sends packets for other nodes' pods and for services. */
export interface NodeRoute {
  readonly dst: Cidr;
  readonly via: Ip;
  /** `gateway`: on the gateway port, where `via` is a neighbour by declaration. `transport`: as the node reaches `via`. */
  readonly by: "gateway" | "transport";
  /** Hardware address of `via` where nobody answers for it. */
  readonly mac?: string;
}

/** A route that the system does not take, and what it says to that. */
export interface RefusedRoute {
  readonly route: NodeRoute;
  readonly why: string;
}

export const refusedRoute = ({ route: { dst, via }, why }: RefusedRoute): CniError =>
  new CniError(
    CniCode.interfaceFailure,
    `Cannot set the route to ${formatCidr(dst)} by way of ${formatIp(via)}: the node refuses it (${why}), wanted it taken`,
  );
