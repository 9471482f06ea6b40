import type { Family, Ip } from "../../../shared/net/ip.ts";
import { ipBytes, ipFromBytes } from "./bytes.ts";
import { Family as AddressFamily } from "./constants.ts";
import { Attributes, fixedHeader, type RawMessage } from "./message-reader.ts";
import type { Message, MessageWriter } from "./message-writer.ts";

/** NFNL_SUBSYS_CTNETLINK, with IPCTNL_MSG_CT_GET and IPCTNL_MSG_CT_DELETE */
const subsystem = 1 << 8;
const ConnectionMessage = { GET: subsystem | 1, DELETE: subsystem | 2 } as const;

/** linux/netfilter/nfnetlink_conntrack.h */
const Cta = {
  TUPLE_ORIG: 1,
  TUPLE_REPLY: 2,
  ID: 12,
  ZONE: 18,
  FILTER: 25,
  FILTER_ORIG_FLAGS: 1,
  TUPLE_IP: 1,
  TUPLE_PROTO: 2,
  IP_V4_SRC: 1,
  IP_V4_DST: 2,
  IP_V6_SRC: 3,
  IP_V6_DST: 4,
  PROTO_NUM: 1,
  PROTO_SRC_PORT: 2,
  PROTO_DST_PORT: 3,
} as const;
/** CTA_FILTER_F_*: the parts of a tuple that have to agree. */
const FilterFlag = { destination: 2, protocol: 8, destinationPort: 32 } as const;

/** Which connections are asked for, by how their first packet was. */
export interface ConnectionFilter {
  readonly family: Family;
  /** Number of the upper protocol. */
  readonly protocol: number;
  readonly destination?: Ip;
  readonly destinationPort?: number;
}

/** A connection that the node's kernel tracks. */
export interface Connection {
  readonly family: Family;
  /** Where its first packet was sent to. */
  readonly destination: Ip;
  readonly destinationPort: number;
  /** Who answers: somebody else where it was translated. */
  readonly answers: Ip;
  readonly answersFrom: number;
  /** The first packet's addresses as the kernel tells them, and the number of the connection. */
  readonly original: Uint8Array;
  readonly id: Uint8Array;
  readonly zone?: Uint8Array;
}

const header = (writer: MessageWriter, family: Family): MessageWriter =>
  writer.u8x4(family === 4 ? AddressFamily.INET : AddressFamily.INET6);

const port = (value: number): Uint8Array => Uint8Array.of(value >> 8, value & 0xff);

/** All that agree with the filter; a kernel before 5.8 answers others too. */
export const listConnections = ({ family, protocol, destination, destinationPort }: ConnectionFilter): Message => ({
  action: () => "list connections",
  type: ConnectionMessage.GET,
  body: (writer) => {
    header(writer, family);
    writer.begin(Cta.TUPLE_ORIG);
    if (destination !== undefined)
      writer.attrNested(Cta.TUPLE_IP, family === 4 ? Cta.IP_V4_DST : Cta.IP_V6_DST, ipBytes(destination));
    writer.begin(Cta.TUPLE_PROTO).attrU8(Cta.PROTO_NUM, protocol);
    if (destinationPort !== undefined) writer.attrBytes(Cta.PROTO_DST_PORT, port(destinationPort));
    writer.end().end();
    const flags =
      FilterFlag.protocol |
      (destination === undefined ? 0 : FilterFlag.destination) |
      (destinationPort === undefined ? 0 : FilterFlag.destinationPort);
    writer.begin(Cta.FILTER).attrU32(Cta.FILTER_ORIG_FLAGS, flags).end();
  },
});

/** @throws {MalformedMessage} */
export function readConnection(message: RawMessage): Connection | undefined {
  const of = new Attributes(fixedHeader(message.body, 4).rest);
  const original = of.bytes(Cta.TUPLE_ORIG);
  const [first, reply] = [of.nested(Cta.TUPLE_ORIG), of.nested(Cta.TUPLE_REPLY)];
  const [destination, answers] = [addressIn(first, "destination"), addressIn(reply, "source")];
  const id = of.bytes(Cta.ID);
  if (original === undefined || id === undefined || destination === undefined || answers === undefined)
    return undefined;
  const zone = of.bytes(Cta.ZONE);
  return {
    family: destination.family,
    destination,
    destinationPort: portIn(first, Cta.PROTO_DST_PORT),
    answers,
    answersFrom: portIn(reply, Cta.PROTO_SRC_PORT),
    original: original.slice(),
    id: id.slice(),
    ...(zone === undefined ? {} : { zone: zone.slice() }),
  };
}

/** ENOENT: it has ended. */
export const deleteConnection = ({ family, original, id, zone }: Connection): Message => ({
  action: () => "end a connection",
  type: ConnectionMessage.DELETE,
  body: (writer) => {
    header(writer, family)
      .attrBytes(Cta.TUPLE_ORIG | nested, original)
      .attrBytes(Cta.ID, id);
    if (zone !== undefined) writer.attrBytes(Cta.ZONE, zone);
  },
});

/** NLA_F_NESTED */
const nested = 0x8000;

function addressIn(tuple: Attributes | undefined, which: "source" | "destination"): Ip | undefined {
  const ip = tuple?.nested(Cta.TUPLE_IP);
  const [v4, v6] = which === "source" ? [Cta.IP_V4_SRC, Cta.IP_V6_SRC] : [Cta.IP_V4_DST, Cta.IP_V6_DST];
  const bytes = ip?.bytes(v4) ?? ip?.bytes(v6);
  return bytes === undefined ? undefined : ipFromBytes(bytes);
}

const portIn = (tuple: Attributes | undefined, type: number): number =>
  (tuple?.nested(Cta.TUPLE_PROTO)?.bytes(type) ?? new Uint8Array(0)).reduce((value, byte) => value * 256 + byte, 0);
