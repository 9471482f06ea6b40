import { bitsOf, type Cidr, type Ip } from "../../../../shared/net/ip.ts";
import type { NodeRoute } from "../../routes.ts";
import { virtualAddress } from "../pipeline/mod.ts";
import { virtualMac } from "../pipeline/registers.ts";

/** The virtual host behind which all services are for the node, of each family that they have. */
export const virtualHosts = (cidrs: readonly Cidr[]): Ip[] =>
  [...new Set(cidrs.map(({ ip }) => ip.family))].map(virtualAddress);

/**
 * How the node itself reaches services: by way of one virtual host behind the gateway port, whose MAC is declared. It
 * also stands for the node where that talks to itself through a service, so answers have to find it.
 */
export function serviceRoutes(cidrs: readonly Cidr[]): NodeRoute[] {
  const hosts = virtualHosts(cidrs).map((ip) => ({ ip, prefix: bitsOf(ip.family) }));
  return [...hosts, ...cidrs].map((dst) => {
    return { dst, via: virtualAddress(dst.ip.family), by: "gateway" as const, mac: virtualMac };
  });
}
