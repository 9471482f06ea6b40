import { type Cidr, formatCidr, type Ip, type Family as IpFamily, ipOf } from "../../../shared/net/ip.ts";
import { cidrOf, ipFromBytes } from "./bytes.ts";
import { Family, Flag, MessageType, Rta } from "./constants.ts";
import { Attributes, fixedHeader, type RawMessage } from "./message-reader.ts";
import type { Message, MessageWriter } from "./message-writer.ts";

/** A route to add: by way of `gateway`, or straight onto the link where there is none. */
export interface NewRoute {
  readonly dst: Cidr;
  readonly gateway?: Ip | undefined;
  /** Absent: the interface by which the gateway is reached. */
  readonly index?: number;
  readonly mtu?: number | undefined;
  readonly advmss?: number | undefined;
  /** Of packets of the node itself that have none yet. */
  readonly source?: Ip | undefined;
  readonly priority?: number | undefined;
  readonly table?: number | undefined;
  readonly scope?: number | undefined;
  /** The gateway is a neighbour on the link, also where none of the link's networks has its address. */
  readonly onLink?: boolean | undefined;
  /** Who made it: one byte, by which a maker finds its own again; absent: "boot", as ip(8) has it. */
  readonly protocol?: number | undefined;
}

/** A route as the kernel tells it: one entry in `hops`, several when it is spread over more ways. */
export interface Route {
  readonly dst: Cidr;
  readonly table: number;
  readonly protocol: number;
  readonly hops: readonly { readonly gateway?: Ip; readonly index: number }[];
}

/**
 * Adds a route beside others to the same block, as the reference plugins do it: a pod with two networks may
 * have two default routes. EEXIST: exactly this one stands.
 */
export function addRoute(route: NewRoute): Message {
  const { dst } = route;
  return {
    action: () => `add the route to "${formatCidr(dst)}"`,
    type: MessageType.NEWROUTE,
    flags: Flag.CREATE,
    body: (writer) => writeRoute(writer, route),
  };
}

/** Takes the one route away that is exactly this. ESRCH: there is none. */
export function deleteRoute(route: NewRoute): Message {
  return {
    action: () => `delete the route to "${formatCidr(route.dst)}"`,
    type: MessageType.DELROUTE,
    body: (writer) => writeRoute(writer, route),
  };
}

/** struct rtmsg with what says where the route leads. */
function writeRoute(writer: MessageWriter, route: NewRoute): void {
  const { dst, gateway } = route;
  const table = route.table ?? Rta.TABLE_MAIN;
  const scope = route.scope ?? (gateway === undefined ? Rta.SCOPE_LINK : Rta.SCOPE_UNIVERSE);
  writer
    .u8x4(dst.ip.family === 4 ? Family.INET : Family.INET6, dst.prefix)
    .u8x4(table > 255 ? 0 : table, route.protocol ?? Rta.PROTOCOL_BOOT, scope, Rta.TYPE_UNICAST)
    .u32(route.onLink ? Rta.F_ONLINK : 0);
  if (dst.prefix > 0) writer.attrIp(Rta.DST, dst.ip);
  if (gateway !== undefined) writer.attrIp(Rta.GATEWAY, gateway);
  if (route.index !== undefined) writer.attrU32(Rta.OIF, route.index);
  if (route.source !== undefined) writer.attrIp(Rta.PREFSRC, route.source);
  writer.attrU32(Rta.TABLE, table);
  if (route.priority !== undefined) writer.attrU32(Rta.PRIORITY, route.priority);
  if (route.mtu === undefined && route.advmss === undefined) return;
  writer.begin(Rta.METRICS);
  if (route.mtu !== undefined) writer.attrU32(Rta.METRIC_MTU, route.mtu);
  if (route.advmss !== undefined) writer.attrU32(Rta.METRIC_ADVMSS, route.advmss);
  writer.end();
}

/** All routes of one family, in every table. */
export function listRoutes(family: IpFamily): Message {
  return {
    action: () => "list the routes",
    type: MessageType.GETROUTE,
    body: (writer) =>
      writer
        .u8x4(family === 4 ? Family.INET : Family.INET6)
        .u32(0)
        .u32(0),
  };
}

/** Reads RTM_NEWROUTE; `undefined` for other families and for routes that lead nowhere or to the node itself. */
export function readRoute(message: RawMessage): Route | undefined {
  const { view, rest } = fixedHeader(message.body, 12);
  const family = view.getUint8(0);
  if ((family !== Family.INET && family !== Family.INET6) || view.getUint8(7) !== Rta.TYPE_UNICAST) return undefined;
  const attributes = new Attributes(rest);
  const ip = ipFromBytes(attributes.bytes(Rta.DST) ?? new Uint8Array(0)) ?? ipOf(family === Family.INET ? 4 : 6, 0n);
  const multipath = attributes.bytes(Rta.MULTIPATH);
  return {
    dst: cidrOf(ip, view.getUint8(1)),
    table: attributes.u32(Rta.TABLE) ?? view.getUint8(4),
    protocol: view.getUint8(5),
    hops: multipath === undefined ? [hop(attributes, attributes.u32(Rta.OIF) ?? 0)] : readHops(multipath),
  };
}

function hop(attributes: Attributes, index: number): { gateway?: Ip; index: number } {
  const gateway = ipFromBytes(attributes.bytes(Rta.GATEWAY) ?? new Uint8Array(0));
  return { index, ...(gateway === undefined ? {} : { gateway }) };
}

/** struct rtnexthop {u16 length, u8 flags, u8 hops, i32 interface} with attributes, one behind the other. */
function readHops(bytes: Uint8Array): { gateway?: Ip; index: number }[] {
  const hops: { gateway?: Ip; index: number }[] = [];
  for (let rest = bytes; rest.length > 0; ) {
    const { view } = fixedHeader(rest, 8);
    const length = view.getUint16(0, true);
    const { rest: attributes } = fixedHeader(rest.subarray(0, length), 8);
    hops.push(hop(new Attributes(attributes), view.getInt32(4, true)));
    rest = rest.subarray((length + 3) & ~3);
  }
  return hops;
}
