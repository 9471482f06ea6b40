import { formatIp } from "../../../../shared/net/ip.ts";
import { parseMac } from "../../../../shared/net/mac.ts";
import {
  declareNeighbour,
  Errno,
  forgetNeighbour,
  type Link,
  listNeighbours,
  type NetlinkSocket,
  readNeighbour,
} from "../../../protocols/netlink/mod.ts";
import { runEach, throwFirst } from "../../linux/kernel-errors.ts";
import type { NodeRoute } from "../../node-route.ts";
import { virtualMac } from "../pipeline/registers.ts";

/**
 * Has exactly those neighbours on the gateway that nobody answers for. Others' declarations there, should there be any,
 * name other MACs.
 * @returns why a route has none
 * @throws {NetlinkError} where the kernel cannot be asked
 */
export function declareNeighbours(
  socket: NetlinkSocket,
  { name, index }: Link,
  routes: readonly NodeRoute[],
): ReadonlyMap<NodeRoute, string> {
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
  const refusals = runEach(socket, messages, Errno.EEXIST);
  const stale = standing.filter(({ ip }) => !declared.has(formatIp(ip)));
  const gone = stale.map(({ ip }) => forgetNeighbour(name, index, ip));
  throwFirst(runEach(socket, gone, Errno.ENOENT));
  const why = new Map([...refusals].map(([at, { message }]) => [formatIp(added[at]!.via), message]));
  return new Map(
    routes.flatMap((route) => {
      const refusal = why.get(formatIp(route.via));
      return refusal === undefined ? [] : [[route, refusal]];
    }),
  );
}
