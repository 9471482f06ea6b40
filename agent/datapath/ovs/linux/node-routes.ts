import { formatCidr, formatIp } from "../../../../shared/ip.ts";
import { parseMac } from "../../../../shared/mac.ts";
import {
  addRoute,
  declareNeighbour,
  deleteRoute,
  Errno,
  forgetNeighbour,
  isRefusal,
  type Link,
  listNeighbours,
  listRoutes,
  type Message,
  type NetlinkError,
  type NetlinkSocket,
  type Route,
  readNeighbour,
  readRoute,
} from "../../../netlink/mod.ts";
import type { NodeRoute, RefusedRoute } from "../host-network.ts";
import { virtualMac } from "../pipeline/registers.ts";

/** Marks routes as ours (rtm_protocol): none of those that /etc/iproute2/rt_protos names. */
const routeProtocol = 0x70;
/** Requests to the kernel at a time: its answers to more would not fit the socket. */
const atOnce = 100;

/**
 * Has exactly these routes of ours, and the neighbours that they lead over. What the kernel refuses is answered; it keeps
 * no other from being made, and none that is stale from going. @throws {NetlinkError} where the kernel cannot be asked
 */
export function setNodeRoutes(
  socket: NetlinkSocket,
  gateway: Link,
  routes: readonly NodeRoute[],
): readonly RefusedRoute[] {
  const neighbours = declareNeighbours(socket, gateway, routes);
  const standing = ownRoutes(socket);
  const there = new Set(standing.map((route) => standingKey(gateway, route)));
  const added = routes.filter((route) => !there.has(wantedKey(route)));
  const refusals = run(
    socket,
    added.map((route) => addRoute(kernelRoute(gateway, route))),
    Errno.EEXIST,
  );
  const wanted = new Set(routes.map(wantedKey));
  const stale = standing.filter((route) => !wanted.has(standingKey(gateway, route)));
  throwFirst(remove(socket, stale));
  const refused = new Map([...refusals].map(([at, refusal]) => [added[at], refusal]));
  return routes.flatMap((route) => {
    const refusal = neighbours.get(formatIp(route.via)) ?? refused.get(route);
    return refusal === undefined ? [] : [{ route, why: refusal.message }];
  });
}

/** Those of every agent, whatever its gateway was called. Answers whether there were any. @throws {NetlinkError} */
export function removeNodeRoutes(socket: NetlinkSocket): boolean {
  const standing = ownRoutes(socket);
  throwFirst(remove(socket, standing));
  return standing.length > 0;
}

const ownRoutes = (socket: NetlinkSocket): readonly Route[] =>
  ([4, 6] as const).flatMap((family) =>
    socket.dump(listRoutes(family), readRoute).filter(({ protocol }) => protocol === routeProtocol),
  );

function remove(socket: NetlinkSocket, routes: readonly Route[]): Refusals {
  const messages = routes.flatMap(({ dst, hops: [hop] }) => {
    if (hop === undefined) return [];
    return [deleteRoute({ dst, index: hop.index, gateway: hop.gateway, protocol: routeProtocol })];
  });
  return run(socket, messages, Errno.ESRCH);
}

const kernelRoute = (link: Link, { dst, via, by }: NodeRoute) => ({
  dst,
  gateway: via,
  protocol: routeProtocol,
  ...(by === "gateway" ? { index: link.index, onLink: true } : {}),
});

const wantedKey = ({ dst, via, by }: NodeRoute): string => `${formatCidr(dst)} ${formatIp(via)} ${by}`;

function standingKey(link: Link, { dst, hops: [hop] }: Route): string {
  const via = hop?.gateway === undefined ? "" : formatIp(hop.gateway);
  return `${formatCidr(dst)} ${via} ${hop?.index === link.index ? "gateway" : "transport"}`;
}

/** Those that nobody answers for. Others' declarations on the gateway, should there be any, name other MACs. @returns refusals by the neighbour's address */
function declareNeighbours(
  socket: NetlinkSocket,
  { name, index }: Link,
  routes: readonly NodeRoute[],
): ReadonlyMap<string, NetlinkError> {
  const declared = new Map(
    routes.flatMap(({ via, mac }) => (mac === undefined ? [] : [[formatIp(via), { via, mac }]])),
  );
  const standing = socket
    .dump(listNeighbours(index), readNeighbour)
    .filter((one) => one.index === index && one.permanent && one.mac === virtualMac);
  const known = new Set(standing.map(({ ip }) => formatIp(ip)));
  const added = [...declared.values()].flatMap(({ via, mac }) => {
    const bytes = parseMac(mac);
    return known.has(formatIp(via)) || bytes === undefined ? [] : [{ via, bytes }];
  });
  const messages = added.map(({ via, bytes }) => declareNeighbour(name, index, via, bytes));
  const refusals = run(socket, messages, Errno.EEXIST);
  const stale = standing.filter(({ ip }) => !declared.has(formatIp(ip)));
  throwFirst(
    run(
      socket,
      stale.map(({ ip }) => forgetNeighbour(name, index, ip)),
      Errno.ENOENT,
    ),
  );
  return new Map([...refusals].map(([at, refusal]) => [formatIp(added[at]!.via), refusal]));
}

/** By the place of the message that the kernel has refused. */
type Refusals = ReadonlyMap<number, NetlinkError>;

/** What cannot be taken away is the node's own trouble, and nobody's record. */
function throwFirst(refusals: Refusals): void {
  const [first] = refusals.values();
  if (first !== undefined) throw first;
}

/** Each by itself. @param harmless what the kernel answers where it is so already */
function run(socket: NetlinkSocket, messages: readonly Message[], harmless: number): Refusals {
  const refusals = new Map<number, NetlinkError>();
  for (let at = 0; at < messages.length; at += atOnce) {
    for (const [i, outcome] of socket.batch(messages.slice(at, at + atOnce)).entries())
      if (outcome !== undefined && !isRefusal(outcome, harmless)) refusals.set(at + i, outcome);
  }
  return refusals;
}
