import { formatIp, type Ip } from "../../../shared/net/ip.ts";
import { formatMac } from "../../../shared/net/mac.ts";
import { ipFromBytes } from "./bytes.ts";
import { Family, Flag, MessageType, Nda, Nud } from "./constants.ts";
import { Errno } from "./errno.ts";
import { Attributes, fixedHeader, type RawMessage } from "./message-reader.ts";
import type { Message, MessageWriter } from "./message-writer.ts";

/** Which hardware address an interface has for an address. */
export interface Neighbour {
  readonly index: number;
  readonly ip: Ip;
  /** `undefined` where it is still asked for. */
  readonly mac: string | undefined;
  /** By declaration: never asked for, never forgotten. */
  readonly permanent: boolean;
}

/** struct ndmsg. */
export const ndmsg = (writer: MessageWriter, family: number, index: number, state: number, flags = 0): MessageWriter =>
  writer
    .u8x4(family)
    .u32(index)
    .u8x4(state & 0xff, state >>> 8, flags);

const familyOf = (ip: Ip): number => (ip.family === 4 ? Family.INET : Family.INET6);

/** Declares which hardware address `ip` has on an interface, whatever was known before. */
export function declareNeighbour(what: string, index: number, ip: Ip, mac: Uint8Array): Message {
  return {
    action: () => `declare the neighbour "${formatIp(ip)}" on "${what}"`,
    type: MessageType.NEWNEIGH,
    flags: Flag.CREATE | Flag.REPLACE,
    body: (writer) => ndmsg(writer, familyOf(ip), index, Nud.PERMANENT).attrIp(Nda.DST, ip).attrBytes(Nda.LLADDR, mac),
  };
}

/** Forgets which hardware address `ip` had on an interface, if it was known. */
export function forgetNeighbour(what: string, index: number, ip: Ip): Message {
  return {
    action: () => `forget the neighbour "${formatIp(ip)}" on "${what}"`,
    type: MessageType.DELNEIGH,
    harmless: Errno.ENOENT,
    body: (writer) => ndmsg(writer, familyOf(ip), index, 0).attrIp(Nda.DST, ip),
  };
}

/** Of both families. The answer holds other interfaces' too where the kernel does not filter. */
export function listNeighbours(index: number): Message {
  return {
    action: () => "list the neighbours",
    type: MessageType.GETNEIGH,
    body: (writer) => ndmsg(writer, Family.UNSPEC, 0, 0).attrU32(Nda.IFINDEX, index),
  };
}

/** Reads RTM_NEWNEIGH; `undefined` for families other than IP. @throws {MalformedMessage} */
export function readNeighbour(message: RawMessage): Neighbour | undefined {
  const { view, rest } = fixedHeader(message.body, 12);
  const family = view.getUint8(0);
  if (family !== Family.INET && family !== Family.INET6) return undefined;
  const attributes = new Attributes(rest);
  const ip = ipFromBytes(attributes.bytes(Nda.DST) ?? new Uint8Array(0));
  const mac = attributes.bytes(Nda.LLADDR);
  if (ip === undefined) return undefined;
  return {
    index: view.getUint32(4, true),
    ip,
    mac: mac === undefined ? undefined : formatMac(mac),
    permanent: (view.getUint16(8, true) & Nud.PERMANENT) !== 0,
  };
}
