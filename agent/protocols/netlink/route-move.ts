import { type Cidr, formatCidr, ipOf } from "../../../shared/net/ip.ts";
import { cidrOf, ipFromBytes } from "./bytes.ts";
import { Family, Flag, MessageType, Rta } from "./constants.ts";
import { Attributes, fixedHeader, type RawMessage } from "./message-reader.ts";
import type { Message, MessageWriter } from "./message-writer.ts";

/** A route with all attributes of the kernel, to be added again on another interface. */
export interface WholeRoute {
  readonly dst: Cidr;
  /** `false`: the kernel made it with an address or an interface, and will make it again. */
  readonly isConfigured: boolean;
  /** Interfaces that it leads out by. Only one with a single way can be moved. */
  readonly indexes: readonly number[];
  readonly header: Uint8Array;
  readonly attributes: ReadonlyMap<number, Uint8Array>;
}

const headerBytes = 12;
const flagsAt = 8;
/** struct rtnexthop without its attributes. */
const hopBytes = 8;

/** Reads RTM_NEWROUTE whole; `undefined` for other families. @throws {MalformedMessage} */
export function readWholeRoute(message: RawMessage): WholeRoute | undefined {
  const { view, rest } = fixedHeader(message.body, headerBytes);
  const family = view.getUint8(0);
  if (family !== Family.INET && family !== Family.INET6) return undefined;
  const read = new Attributes(rest);
  const ip = ipFromBytes(read.bytes(Rta.DST) ?? new Uint8Array(0)) ?? ipOf(family === Family.INET ? 4 : 6, 0n);
  const index = read.u32(Rta.OIF);
  const multipath = read.bytes(Rta.MULTIPATH);
  return {
    dst: cidrOf(ip, view.getUint8(1)),
    isConfigured: view.getUint8(5) !== Rta.PROTOCOL_KERNEL,
    indexes: multipath === undefined ? (index === undefined ? [] : [index]) : hopsOf(multipath).map((hop) => hop.index),
    // The buffer that it came in is used for the next answer.
    header: message.body.slice(0, headerBytes),
    attributes: new Map([...read.entries()].map(([type, value]) => [type, value.slice()])),
  };
}

/**
 * Splits a multipath IPv6 route into one route per next hop: the kernel lists IPv6 routes that differ only in the next
 * hop as one, but adds and deletes them one by one. An IPv4 multipath route stays one route.
 */
export function waysOf(route: WholeRoute): readonly WholeRoute[] {
  const multipath = route.attributes.get(Rta.MULTIPATH);
  if (multipath === undefined || route.header[0] !== Family.INET6) return [route];
  const common = [...route.attributes].filter(([type]) => type !== Rta.MULTIPATH);
  return hopsOf(multipath).map(({ index, flags, attributes }) => {
    const header = route.header.slice();
    header[flagsAt] = (header[flagsAt] ?? 0) | flags;
    return { ...route, indexes: [index], header, attributes: new Map([...common, ...attributes]) };
  });
}

interface Hop {
  readonly index: number;
  readonly flags: number;
  readonly attributes: readonly (readonly [number, Uint8Array])[];
}

/** struct rtnexthop {u16 length, u8 flags, u8 hops, i32 interface} with attributes, one behind the other. */
function hopsOf(multipath: Uint8Array): Hop[] {
  const hops: Hop[] = [];
  for (let rest = multipath; rest.length > 0; ) {
    const { view } = fixedHeader(rest, hopBytes);
    const length = Math.max(hopBytes, view.getUint16(0, true));
    const read = new Attributes(rest.subarray(hopBytes, length));
    const interfaceBytes = rest.slice(4, hopBytes);
    hops.push({
      index: view.getInt32(4, true),
      flags: view.getUint8(2),
      attributes: [...read.entries(), [Rta.OIF, interfaceBytes]],
    });
    rest = rest.subarray((length + 3) & ~3);
  }
  return hops;
}

/** The same route by way of another interface. EEXIST: it stands. */
export const addRouteBy = (route: WholeRoute, index: number): Message => ({
  action: () => `add the route to "${formatCidr(route.dst)}"`,
  type: MessageType.NEWROUTE,
  flags: Flag.CREATE,
  body: (writer) => writeWhole(writer, route, index),
});

/** ESRCH: there is none. */
export const deleteRouteBy = (route: WholeRoute, index: number): Message => ({
  action: () => `delete the route to "${formatCidr(route.dst)}"`,
  type: MessageType.DELROUTE,
  body: (writer) => writeWhole(writer, route, index),
});

function writeWhole(writer: MessageWriter, { header, attributes }: WholeRoute, index: number): void {
  const view = new DataView(header.buffer, header.byteOffset, header.byteLength);
  for (let at = 0; at < flagsAt; at += 4) writer.u32(view.getUint32(at, true));
  // The kernel reports the interface's state in these flags, and refuses them in a request.
  writer.u32(view.getUint32(flagsAt, true) & Rta.F_ONLINK);
  for (const [type, value] of attributes) {
    if (type === Rta.OIF) writer.attrU32(Rta.OIF, index);
    else if (type !== Rta.CACHEINFO) writer.attrBytes(type, value);
  }
}
