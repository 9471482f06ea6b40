import type { CniResult } from "../../../shared/cni/types.ts";
import { CniCode, CniError } from "../../../shared/errors.ts";
import { formatCidr, formatIp, sameIp } from "../../../shared/net/ip.ts";
import type { Link, Route } from "../../protocols/netlink/mod.ts";
import { gatewayOf } from "../routes.ts";
import type { PodEnd } from "./pod-end.ts";

/** The first difference that CHECK found. */
export const mismatch = (what: string, is: string, wanted: string): CniError =>
  new CniError(CniCode.checkFailure, `Cannot confirm ${what}: it is ${is}, wanted ${wanted}`);

/**
 * The sandbox's side against `prevResult`. Additional things are allowed, since plugins later in the chain add
 * interfaces, addresses and routes (specification 1.1.0, "CHECK").
 */
export function comparePodEnd(pod: PodEnd, ifname: string, hostLink: Link, prevResult: CniResult): void {
  const what = `the sandbox's interface "${ifname}"`;
  const link = pod.link(ifname);
  if (link === undefined) throw mismatch(what, "missing", "the other end of our pair");
  if (link.index !== hostLink.peerIndex) throw mismatch(what, "another interface", "the other end of our pair");
  if (!link.up) throw mismatch(what, "down", "up");
  const at = prevResult.interfaces.findIndex((entry) => entry.name === ifname && (entry.sandbox ?? "") !== "");
  const entry = prevResult.interfaces[at];
  if (entry === undefined) throw mismatch(what, "not in prevResult", "an interface of it with a sandbox");
  const mac = entry.mac?.toLowerCase() ?? "";
  if (mac !== "" && mac !== link.mac)
    throw mismatch(`the hardware address of "${ifname}"`, `"${link.mac}"`, `"${mac}"`);
  if (entry.mtu !== undefined && entry.mtu !== 0 && entry.mtu !== link.mtu) {
    throw mismatch(`the MTU of "${ifname}"`, String(link.mtu), String(entry.mtu));
  }
  const ips = prevResult.ips.filter((ip) => ip.interface === undefined || ip.interface === at);
  const standing = pod.addresses(link);
  for (const { address } of ips) {
    const found = standing.find((one) => sameIp(one.address.ip, address.ip));
    const address_ = `the address "${formatCidr(address)}" of "${ifname}"`;
    if (found === undefined) throw mismatch(address_, "missing", "on the interface");
    if (found.address.prefix !== address.prefix)
      throw mismatch(address_, `/${found.address.prefix}`, `/${address.prefix}`);
    if (!found.ready) throw mismatch(address_, "not usable yet", "usable");
  }
  compareRoutes(pod.routes(), prevResult);
}

function compareRoutes(standing: readonly Route[], prevResult: CniResult): void {
  for (const route of prevResult.routes) {
    const gateway = gatewayOf(route, prevResult.ips);
    const found = standing.some(
      ({ dst, table, hops }) =>
        dst.prefix === route.dst.prefix &&
        sameIp(dst.ip, route.dst.ip) &&
        (route.table === undefined || table === route.table) &&
        (gateway === undefined || hops.some((hop) => hop.gateway !== undefined && sameIp(hop.gateway, gateway))),
    );
    const way = gateway === undefined ? "" : ` by way of "${formatIp(gateway)}"`;
    if (!found) throw mismatch(`the route to "${formatCidr(route.dst)}"${way}`, "missing", "in the sandbox");
  }
}
