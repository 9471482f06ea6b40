import type { CniResult, CniRoute } from "../../shared/cni/types.ts";
import type { Ip } from "../../shared/net/ip.ts";

/** Where a route leads: its own gateway, else the gateway of the first address of its family that has one. */
export function gatewayOf(route: CniRoute, ips: CniResult["ips"]): Ip | undefined {
  if (route.gw !== undefined) return route.gw;
  return ips.find((ip) => ip.address.ip.family === route.dst.ip.family && ip.gateway !== undefined)?.gateway;
}
