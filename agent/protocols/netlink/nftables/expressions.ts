import type { MessageWriter } from "../message-writer.ts";
import {
  COUNTER_OBJECT,
  Comparison,
  Ct,
  CtDirection,
  CtState,
  ctConfirmed,
  ctDestinationTranslated,
  EXTHDR_PRESENT,
  Fib,
  LOOKUP_INVERTED,
  Meta,
  Nfta,
  PACKET_HOST,
  PayloadBase,
  Register,
  Reject,
  Verdict,
} from "./numbers.ts";
import { reportedBytes } from "./reports.ts";

/**
 * One step of a rule: it loads something of the packet, or compares it, or ends the rule with a verdict. A packet
 * without the loaded field does not match the rule.
 */
export type Expression = (writer: MessageWriter) => void;

/** A field of a packet, with its width. */
export interface Field {
  readonly bytes: number;
  /** @param at number of the register of four bytes that its first byte goes to */
  load(at: number): Expression;
}

export function expression(name: string, data: (writer: MessageWriter) => void): Expression {
  return (writer) => {
    writer.begin(Nfta.LIST_ELEM).attrText(Nfta.EXPR_NAME, name).begin(Nfta.EXPR_DATA);
    data(writer);
    writer.end().end();
  };
}

export const register = (at: number): number => Register.FIRST + at;
/** Values that are looked up together begin at a register each. */
const registersOf = (bytes: number): number => Math.ceil(bytes / 4);

/** Bytes of the packet, counted from the start of one of its headers. */
export function payload(base: keyof typeof PayloadBase, offset: number, bytes: number): Field {
  return {
    bytes,
    load: (at) =>
      expression("payload", (writer) => {
        writer
          .attrU32Net(Nfta.PAYLOAD_DREG, register(at))
          .attrU32Net(Nfta.PAYLOAD_BASE, PayloadBase[base])
          .attrU32Net(Nfta.PAYLOAD_OFFSET, offset)
          .attrU32Net(Nfta.PAYLOAD_LEN, bytes);
      }),
  };
}

function meta(key: keyof typeof Meta, bytes: number): Field {
  return {
    bytes,
    load: (at) =>
      expression("meta", (writer) => {
        writer.attrU32Net(Nfta.META_KEY, Meta[key]).attrU32Net(Nfta.META_DREG, register(at));
      }),
  };
}

/** Index of the interface that the packet came in by. */
export const inputInterface = meta("IIF", 4);
/** Index of the one that it leaves by. */
export const outputInterface = meta("OIF", 4);
/** Number of the group of interfaces that it is in, in the machine's byte order. */
export const inputInterfaceGroup = meta("IIFGROUP", 4);
/** Its name, filled up with zeros. */
export const inputInterfaceName = meta("IIFNAME", 16);
/** Name of the one that it leaves by, filled up with zeros. */
export const outputInterfaceName = meta("OIFNAME", 16);
/** What this node has noted on the packet, in the machine's byte order. */
export const packetMark = meta("MARK", 4);
/** By which it is queued where it leaves, in the machine's byte order. */
export const packetPriority = meta("PRIORITY", 4);
/** Of a packet in a table `inet`: 2 or 10, as AF_INET and AF_INET6. */
export const networkFamily = meta("NFPROTO", 1);
/** What stands behind IP's headers, extension headers included; not there where the kernel cannot make them out. */
export const upperProtocol = meta("L4PROTO", 1);

function connection(key: keyof typeof Ct, bytes: number, direction?: keyof typeof CtDirection): Field {
  return {
    bytes,
    load: (at) =>
      expression("ct", (writer) => {
        writer.attrU32Net(Nfta.CT_DREG, register(at)).attrU32Net(Nfta.CT_KEY, Ct[key]);
        if (direction !== undefined) writer.attrU8(Nfta.CT_DIRECTION, CtDirection[direction]);
      }),
  };
}

/**
 * The connection that a packet belongs to, in whichever direction it goes, or that an ICMP error is about: as its first
 * packet was where its source is still its own and its destination is the one that it was given in the end. Not there
 * where the packet belongs to none.
 */
export const connectionFields = {
  protocol: connection("PROTOCOL", 1),
  source4: connection("SRC_IP", 4, "original"),
  source6: connection("SRC_IP6", 16, "original"),
  destination4: connection("SRC_IP", 4, "reply"),
  destination6: connection("SRC_IP6", 16, "reply"),
  /** Of ICMP something else. */
  destinationPort: connection("PROTO_SRC", 2, "reply"),
} as const;

const addressKind = (flags: number): Field => ({
  bytes: 4,
  load: (at) =>
    expression("fib", (writer) => {
      writer
        .attrU32Net(Nfta.FIB_DREG, register(at))
        .attrU32Net(Nfta.FIB_RESULT, Fib.ADDRTYPE)
        .attrU32Net(Nfta.FIB_FLAGS, flags);
    }),
});

/** RTN_*: what the destination is to the interface that the packet came in by, in the machine's byte order; 2 where that has the address. */
export const destinationKind = addressKind(Fib.DESTINATION_AT_INPUT);
/** What it is to the node. */
export const destinationKindAtNode = addressKind(Fib.DESTINATION);
/** The same of the source to the node; 2 where one of its interfaces has the address. */
export const sourceKind = addressKind(Fib.SOURCE);

/** 1 where the IPv6 packet has an extension header of this number, else 0. */
export const hasExtensionHeader = (number: number): Field => ({
  bytes: 1,
  load: (at) =>
    expression("exthdr", (writer) => {
      writer
        .attrU32Net(Nfta.EXTHDR_DREG, register(at))
        .attrU8(Nfta.EXTHDR_TYPE, number)
        .attrU32Net(Nfta.EXTHDR_OFFSET, 0)
        .attrU32Net(Nfta.EXTHDR_LEN, 1)
        .attrU32Net(Nfta.EXTHDR_FLAGS, EXTHDR_PRESENT);
    }),
});

/** The field's bits that `mask` has. */
export const masked = (field: Field, mask: Uint8Array): Field => ({
  bytes: field.bytes,
  load: (at) => (writer) => {
    field.load(at)(writer);
    expression("bitwise", () => {
      writer
        .attrU32Net(Nfta.BITWISE_SREG, register(at))
        .attrU32Net(Nfta.BITWISE_DREG, register(at))
        .attrU32Net(Nfta.BITWISE_LEN, field.bytes)
        .attrNested(Nfta.BITWISE_MASK, Nfta.DATA_VALUE, mask)
        .attrNested(Nfta.BITWISE_XOR, Nfta.DATA_VALUE, new Uint8Array(field.bytes));
    })(writer);
  },
});

/** Continues if the comparison of the field with `value` holds, as big-endian numbers. */
export const compare = (field: Field, operation: keyof typeof Comparison, value: Uint8Array): readonly Expression[] => [
  field.load(0),
  expression("cmp", (writer) => {
    writer
      .attrU32Net(Nfta.CMP_SREG, register(0))
      .attrU32Net(Nfta.CMP_OP, Comparison[operation])
      .attrNested(Nfta.CMP_DATA, Nfta.DATA_VALUE, value);
  }),
];

const inMachineOrder = (value: number): Uint8Array => new Uint8Array(Uint32Array.of(value).buffer);

const bitsOf = (field: Field, bits: number, operation: "eq" | "neq"): readonly Expression[] =>
  compare(masked(field, inMachineOrder(bits)), operation, inMachineOrder(0));

/** Continues with the first packet of a connection, until it has passed all hooks. */
export const opensConnection = bitsOf(connection("STATUS", 4), ctConfirmed, "eq");

/** Continues where the connection's destination was translated. */
export const isTranslated = bitsOf(connection("STATUS", 4), ctDestinationTranslated, "neq");

/** Continues with packets that belong to no connection. */
export const isOfNoConnection = bitsOf(connection("STATE", 4), CtState.invalid | CtState.untracked, "neq");

/** Looks up what is in the registers from `at` on. @param into for a map: where the value goes, or `Register.VERDICT` */
export const lookup = (set: string, at: number, into?: number, flags = 0): Expression =>
  expression("lookup", (writer) => {
    writer.attrText(Nfta.LOOKUP_SET, set).attrU32Net(Nfta.LOOKUP_SREG, register(at));
    if (into !== undefined) writer.attrU32Net(Nfta.LOOKUP_DREG, into);
    if (flags !== 0) writer.attrU32Net(Nfta.LOOKUP_FLAGS, flags);
  });

/** Loads fields one behind the other, each from a register of its own on. */
export function loads(at: number, ...fields: readonly Field[]): readonly Expression[] {
  let next = at;
  return fields.map((field) => {
    const load = field.load(next);
    next += registersOf(field.bytes);
    return load;
  });
}

/** Continues if the concatenated fields are an element of the set. */
export const among = (set: string, ...fields: readonly Field[]): readonly Expression[] => [
  ...loads(0, ...fields),
  lookup(set, 0),
];

/** Continues if they are not. */
export const notAmong = (set: string, ...fields: readonly Field[]): readonly Expression[] => [
  ...loads(0, ...fields),
  lookup(set, 0, undefined, LOOKUP_INVERTED),
];

/** Continues in the chain that the map has for the field, and returns from there; in the next rule if it has none. */
export const jumpBy = (map: string, field: Field): readonly Expression[] => [
  field.load(0),
  lookup(map, 0, Register.VERDICT),
];

/** Counts packets and bytes that get this far. */
export const counter: Expression = expression("counter", () => undefined);

/** The same in a counter that has a name, and that several rules may share. */
export const countIn = (name: string): Expression =>
  expression("objref", (writer) => {
    writer.attrU32Net(Nfta.OBJREF_TYPE, COUNTER_OBJECT).attrText(Nfta.OBJREF_NAME, name);
  });

/** Puts a value into the register of the following expression. */
export const constant = (value: Uint8Array, at = 0): Expression =>
  expression("immediate", (writer) => {
    writer.attrU32Net(Nfta.IMMEDIATE_DREG, register(at)).attrNested(Nfta.IMMEDIATE_DATA, Nfta.DATA_VALUE, value);
  });

/** Makes a frame one for the node itself, whose kernel routes what is in it. @param mac of the bridge */
export const sendToNode = (mac: Uint8Array): readonly Expression[] => [
  constant(mac),
  expression("payload", (writer) => {
    writer
      .attrU32Net(Nfta.PAYLOAD_SREG, register(0))
      .attrU32Net(Nfta.PAYLOAD_BASE, PayloadBase.link)
      .attrU32Net(Nfta.PAYLOAD_OFFSET, 0)
      .attrU32Net(Nfta.PAYLOAD_LEN, mac.length);
  }),
  constant(Uint8Array.of(PACKET_HOST)),
  expression("meta", (writer) => {
    writer.attrU32Net(Nfta.META_KEY, Meta.PKTTYPE).attrU32Net(Nfta.META_SREG, register(0));
  }),
];

function verdict(code: number, chain?: string): Expression {
  return expression("immediate", (writer) => {
    writer.attrU32Net(Nfta.IMMEDIATE_DREG, Register.VERDICT).begin(Nfta.IMMEDIATE_DATA).begin(Nfta.DATA_VERDICT);
    writer.attrU32Net(Nfta.VERDICT_CODE, code);
    if (chain !== undefined) writer.attrText(Nfta.VERDICT_CHAIN, chain);
    writer.end().end();
  });
}

export const accept = verdict(Verdict.accept);
export const drop = verdict(Verdict.drop);

/** Continues in another chain, and returns. */
export const jumpTo = (chain: string): Expression => verdict(Verdict.jump, chain);

/** Continues in another chain and does not return. */
export const goTo = (chain: string): Expression => verdict(Verdict.goto, chain);

const u64Net = (value: number): Uint8Array => {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(value));
  return bytes;
};

/**
 * Reports the packet to a group (`followReports`), and goes on with it. The rule ends here for those beyond the rate.
 * @param prefix comes with each packet, of 127 bytes at most
 */
export const reportTo = (
  group: number,
  prefix: string,
  { perSecond, burst }: { readonly perSecond: number; readonly burst: number },
): readonly Expression[] => [
  expression("limit", (writer) => {
    writer.attrBytes(Nfta.LIMIT_RATE, u64Net(perSecond)).attrBytes(Nfta.LIMIT_UNIT, u64Net(1));
    writer.attrU32Net(Nfta.LIMIT_BURST, burst);
  }),
  expression("log", (writer) => {
    writer.attrBytes(Nfta.LOG_GROUP, Uint8Array.of(group >> 8, group & 0xff)).attrText(Nfta.LOG_PREFIX, prefix);
    writer.attrU32Net(Nfta.LOG_SNAPLEN, reportedBytes);
  }),
];

const rejectWith = (code: number): Expression =>
  expression("reject", (writer) => {
    writer.attrU32Net(Nfta.REJECT_TYPE, Reject.ICMPX_UNREACH).attrU8(Nfta.REJECT_ICMP_CODE, code);
  });

/** Drops the packet and sends ICMP host unreachable. */
export const rejectAsAbsent = rejectWith(Reject.HOST_UNREACH);
/** The same with port unreachable. */
export const rejectAsClosed = rejectWith(Reject.PORT_UNREACH);
/** Drops a packet of TCP and sends a reset. */
export const reset: Expression = expression("reject", (writer) => {
  writer.attrU32Net(Nfta.REJECT_TYPE, Reject.TCP_RST).attrU8(Nfta.REJECT_ICMP_CODE, 0);
});
