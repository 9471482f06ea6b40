import { formatCidr, formatIp, type Ip } from "../../../shared/net/ip.ts";
import {
  addRoute,
  deleteRoute,
  Errno,
  type Link,
  listRoutes,
  type NetlinkSocket,
  type Route,
  readRoute,
} from "../../protocols/netlink/mod.ts";
import type { NodeRoute, RefusedRoute } from "../routes.ts";
import { type Refusals, runEach, throwFirst } from "./kernel-errors.ts";

/** Marks routes as ours (rtm_protocol): none of those that /etc/iproute2/rt_protos names. */
export const routeProtocol = 0x70;

/**
 * Sets exactly these routes of ours, and removes others of any agent. Refused routes are answered; they do not stop the
 * rest.
 * @param gateway the interface of those that are `by` it
 * @param keptVia routes by these next hops stay, whether they are wanted or not
 * @throws {NetlinkError} where the kernel cannot be asked
 */
export function setNodeRoutes(
  socket: NetlinkSocket,
  routes: readonly NodeRoute[],
  gateway?: Link,
  keptVia: readonly Ip[] = [],
): readonly RefusedRoute[] {
  const standing = ownRoutes(socket);
  const there = new Set(standing.map((route) => standingKey(gateway, route)));
  const added = routes.filter((route) => !there.has(wantedKey(route)));
  const refusals = runEach(
    socket,
    added.map((route) => addRoute(kernelRoute(gateway, route))),
    Errno.EEXIST,
  );
  const wanted = new Set(routes.map(wantedKey));
  const kept = new Set(keptVia.map(formatIp));
  const isKept = ({ hops: [hop] }: Route): boolean => hop?.gateway !== undefined && kept.has(formatIp(hop.gateway));
  const stale = standing.filter((route) => !wanted.has(standingKey(gateway, route)) && !isKept(route));
  throwFirst(remove(socket, stale));
  return [...refusals].flatMap(([at, { message }]) => {
    const route = added[at];
    return route === undefined ? [] : [{ route, why: message }];
  });
}

/** Those of every agent, whatever its gateway was called. Answers whether there were any. @throws {NetlinkError} */
export function removeNodeRoutes(socket: NetlinkSocket): boolean {
  const standing = ownRoutes(socket);
  throwFirst(remove(socket, standing));
  return standing.length > 0;
}

/** Of any agent. @throws {NetlinkError} */
export const hasNodeRoutes = (socket: NetlinkSocket): boolean => ownRoutes(socket).length > 0;

const ownRoutes = (socket: NetlinkSocket): readonly Route[] =>
  ([4, 6] as const).flatMap((family) =>
    socket.dump(listRoutes(family), readRoute).filter(({ protocol }) => protocol === routeProtocol),
  );

function remove(socket: NetlinkSocket, routes: readonly Route[]): Refusals {
  const messages = routes.flatMap(({ dst, hops: [hop] }) => {
    if (hop === undefined) return [];
    return [deleteRoute({ dst, index: hop.index, gateway: hop.gateway, protocol: routeProtocol })];
  });
  return runEach(socket, messages, Errno.ESRCH);
}

const kernelRoute = (gateway: Link | undefined, { dst, via, by }: NodeRoute) => ({
  dst,
  gateway: via,
  protocol: routeProtocol,
  ...(by === "gateway" && gateway !== undefined ? { index: gateway.index, onLink: true } : {}),
});

const wantedKey = ({ dst, via, by }: NodeRoute): string => `${formatCidr(dst)} ${formatIp(via)} ${by}`;

function standingKey(gateway: Link | undefined, { dst, hops: [hop] }: Route): string {
  const via = hop?.gateway === undefined ? "" : formatIp(hop.gateway);
  return `${formatCidr(dst)} ${via} ${hop?.index === gateway?.index ? "gateway" : "transport"}`;
}
