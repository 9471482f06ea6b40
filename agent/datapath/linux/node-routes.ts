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

type RouteDevice = Pick<Link, "index">;

/** The interfaces that routes can be `by`. */
export interface RouteDevices {
  readonly gateway?: RouteDevice;
  readonly encrypted?: RouteDevice;
}

/** Marks routes as ours (rtm_protocol): none of those that /etc/iproute2/rt_protos names. */
export const routeProtocol = 0x70;

/**
 * Sets exactly these routes of ours, and removes others of any agent. Refused routes are answered; they do not stop the
 * rest.
 * @param devices the interfaces of those that are `by` them; a route by one that is missing is refused
 * @param keptVia routes by these next hops stay, whether they are wanted or not
 * @throws {NetlinkError} where the kernel cannot be asked
 */
export function setNodeRoutes(
  socket: NetlinkSocket,
  routes: readonly NodeRoute[],
  devices: RouteDevices = {},
  keptVia: readonly Ip[] = [],
): readonly RefusedRoute[] {
  const standing = ownRoutes(socket);
  const there = new Set(standing.map((route) => standingKey(devices, route)));
  const lost = routes.filter(({ by }) => by === "encrypted" && devices.encrypted === undefined);
  const added = routes.filter((route) => !there.has(wantedKey(route)) && !lost.includes(route));
  const refusals = runEach(
    socket,
    added.map((route) => addRoute(kernelRoute(devices, route))),
    Errno.EEXIST,
  );
  const wanted = new Set(routes.map(wantedKey));
  const kept = new Set(keptVia.map(formatIp));
  const isKept = ({ hops: [hop] }: Route): boolean => hop?.gateway !== undefined && kept.has(formatIp(hop.gateway));
  const stale = standing.filter((route) => !wanted.has(standingKey(devices, route)) && !isKept(route));
  throwFirst(remove(socket, stale));
  return [
    ...lost.map((route) => ({ route, why: "the device that encrypts is missing" })),
    ...[...refusals].flatMap(([at, { message }]) => {
      const route = added[at];
      return route === undefined ? [] : [{ route, why: message }];
    }),
  ];
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

function kernelRoute(devices: RouteDevices, { dst, via, by, source }: NodeRoute) {
  const device = by === "transport" ? undefined : devices[by];
  return {
    dst,
    gateway: via,
    protocol: routeProtocol,
    ...(device === undefined ? {} : { index: device.index, onLink: true }),
    ...(source === undefined ? {} : { source }),
  };
}

const wantedKey = ({ dst, via, by }: NodeRoute): string => `${formatCidr(dst)} ${formatIp(via)} ${by}`;

function standingKey({ gateway, encrypted }: RouteDevices, { dst, hops: [hop] }: Route): string {
  const via = hop?.gateway === undefined ? "" : formatIp(hop.gateway);
  const isBy = (device: RouteDevice | undefined): boolean => hop?.index === device?.index;
  const by = isBy(gateway) ? "gateway" : encrypted !== undefined && isBy(encrypted) ? "encrypted" : "transport";
  return `${formatCidr(dst)} ${via} ${by}`;
}
