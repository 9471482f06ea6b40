import {
  compare,
  counter,
  drop,
  type Expression,
  type Field,
  masked,
  payload,
  type Rule,
  type Table,
} from "../../protocols/netlink/mod.ts";

/** The fields of a frame that the rules for pods' ports compare. */

/** 01:80:c2:00:00: BPDUs, LLDP, pause frames, GARP. */
export const destinationGroup = payload("link", 0, 5);
export const sourceMac = payload("link", 6, 6);
/** The outermost EtherType; in a tagged frame the tag's. */
export const etherType = payload("link", 12, 2);

/** Types and lengths of its addresses. */
export const arpHead = payload("network", 0, 6);
export const arpOperation = payload("network", 6, 2);
export const arpSenderMac = payload("network", 8, 6);
export const arpSender = payload("network", 14, 4);
export const arpTarget = payload("network", 24, 4);

export const source4 = payload("network", 12, 4);
/** The first octet of the destination: 127 is loopback. */
export const destinationClass4 = payload("network", 16, 1);
/** In units of eight bytes; 0 is the first fragment, or the whole packet. */
export const fragmentOffset4 = masked(payload("network", 6, 2), Uint8Array.of(0x1f, 0xff));

/** Bytes behind IPv6's header. */
export const length6 = payload("network", 4, 2);
export const nextHeader = payload("network", 6, 1);
export const source6 = payload("network", 8, 16);
export const destination6 = payload("network", 24, 16);

/** Of a packet without extension headers. */
export const icmp6 = {
  type: payload("network", 40, 1),
  /** What neighbour discovery is about. */
  target: payload("network", 48, 16),
  /** Its first option: kind and length, and what it tells. */
  option: payload("network", 64, 2),
  optionMac: payload("network", 66, 6),
} as const;

/** Of a packet whose only extension header is a fragment's. */
export const fragment6 = {
  next: payload("network", 40, 1),
  offset: masked(payload("network", 42, 2), Uint8Array.of(0xff, 0xf8)),
  icmpType: payload("network", 48, 1),
  destinationPort: payload("network", 50, 2),
} as const;

/** The first byte of the upper protocol's header, wherever that begins; absent in later fragments. */
export const upperType = payload("transport", 0, 1);
export const upperDestinationPort = payload("transport", 2, 2);

const bytesOf = (value: number, bytes: number): Uint8Array =>
  Uint8Array.from({ length: bytes }, (_, i) => Math.floor(value / 256 ** (bytes - 1 - i)) % 256);

export const is = (field: Field, value: number): readonly Expression[] =>
  compare(field, "eq", bytesOf(value, field.bytes));

export const isNot = (field: Field, ...values: readonly number[]): readonly Expression[] =>
  values.flatMap((value) => compare(field, "neq", bytesOf(value, field.bytes)));

export const isBelow = (field: Field, value: number): readonly Expression[] =>
  compare(field, "lt", bytesOf(value, field.bytes));

export const isBetween = (field: Field, least: number, most: number): readonly Expression[] => [
  ...compare(field, "gte", bytesOf(least, field.bytes)),
  ...compare(field, "lte", bytesOf(most, field.bytes)),
];

/** Makes a rule of one table. @param leadsTo chain that decides about what has passed `expressions` */
export type RuleMaker = (chain: string, comment: string, expressions: readonly Expression[], leadsTo?: string) => Rule;

export const rulesOf =
  (table: Table): RuleMaker =>
  (chain, comment, expressions, leadsTo) => ({
    table,
    chain,
    comment,
    expressions,
    ...(leadsTo === undefined ? {} : { leadsTo }),
  });

/** The last rule of a chain, which shows how much it has dropped. */
export const dropTheRest = (rule: RuleMaker, chain: string): Rule => rule(chain, "nothing else", [counter, drop]);

/** Numbers of protocols in IPv4's `protocol` and IPv6's `next header`. */
export const Upper = { icmp4: 1, igmp: 2, tcp: 6, udp: 17, icmp6: 58 } as const;
