import { type Expression, expression, type Field, lookup, packetMark, register } from "./expressions.ts";
import { DNAT, DynsetOp, Meta, Nfta, RANDOM, Register, TableFamily } from "./numbers.ts";

/**
 * Steps that work on registers of four bytes, by their numbers: to look something up with what was looked up before, and
 * to translate a connection's addresses with it.
 */

/** Continues if what is in the registers from `at` on is a key of the map, whose value goes to those from `into` on. */
export const lookUp = (map: string, at: number, into: number): Expression => lookup(map, at, register(into));

/** Continues in the chain that the map has for what is in the registers from `at` on. */
export const jumpByRegisters = (map: string, at: number): Expression => lookup(map, at, Register.VERDICT);

/** One of so many numbers from `from` on, drawn for each packet; in the machine's byte order. */
export const randomBelow = (count: number, from: number): Field => ({
  bytes: 4,
  load: (at) =>
    expression("numgen", (writer) => {
      writer
        .attrU32Net(Nfta.NG_DREG, register(at))
        .attrU32Net(Nfta.NG_MODULUS, count)
        .attrU32Net(Nfta.NG_TYPE, RANDOM)
        .attrU32Net(Nfta.NG_OFFSET, from);
    }),
});

/** Where key and value of an element are that a packet changes. */
interface KeptElement {
  readonly key: number;
  /** Only of a map. */
  readonly value?: number;
}

/** Has the set keep this for so long from now on; one that stands keeps its value. Continues unless the set is full. */
export const keepFor = (set: string, { key, value }: KeptElement, seconds: number): Expression =>
  expression("dynset", (writer) => {
    writer
      .attrText(Nfta.DYNSET_SET_NAME, set)
      .attrU32Net(Nfta.DYNSET_OP, DynsetOp.update)
      .attrU32Net(Nfta.DYNSET_SREG_KEY, register(key));
    if (value !== undefined) writer.attrU32Net(Nfta.DYNSET_SREG_DATA, register(value));
    const timeoutMs = new Uint8Array(8);
    new DataView(timeoutMs.buffer).setBigUint64(0, BigInt(seconds) * 1000n);
    writer.attrBytes(Nfta.DYNSET_TIMEOUT, timeoutMs);
  });

/** Has a map forget it; one that is not there is none. */
export const forget = (map: string, { key, value }: Required<KeptElement>): Expression =>
  expression("dynset", (writer) => {
    writer
      .attrText(Nfta.DYNSET_SET_NAME, map)
      .attrU32Net(Nfta.DYNSET_OP, DynsetOp.delete)
      .attrU32Net(Nfta.DYNSET_SREG_KEY, register(key))
      .attrU32Net(Nfta.DYNSET_SREG_DATA, register(value));
  });

/** Leads the connection to the address in the registers from `at` on, and to the port in the one behind. */
export const leadTo = (family: 4 | 6, at: number): Expression =>
  expression("nat", (writer) => {
    writer
      .attrU32Net(Nfta.NAT_TYPE, DNAT)
      .attrU32Net(Nfta.NAT_FAMILY, family === 4 ? TableFamily.ip : TableFamily.ip6)
      .attrU32Net(Nfta.NAT_REG_ADDR_MIN, register(at))
      .attrU32Net(Nfta.NAT_REG_PROTO_MIN, register(at + (family === 4 ? 1 : 4)));
  });

/** Hides the connection's source behind the node's own address at the interface that it leaves by. */
export const masquerade: Expression = expression("masq", () => undefined);

const number = (value: number): Uint8Array => new Uint8Array(Uint32Array.of(value).buffer);

/** Sets bits of the packet's mark, which stays with it in this node, or clears them; others stay. */
export const markWith = (bits: number, isSet: boolean): readonly Expression[] => [
  packetMark.load(0),
  expression("bitwise", (writer) => {
    writer
      .attrU32Net(Nfta.BITWISE_SREG, register(0))
      .attrU32Net(Nfta.BITWISE_DREG, register(0))
      .attrU32Net(Nfta.BITWISE_LEN, 4)
      .attrNested(Nfta.BITWISE_MASK, Nfta.DATA_VALUE, number(~bits >>> 0))
      .attrNested(Nfta.BITWISE_XOR, Nfta.DATA_VALUE, number(isSet ? bits : 0));
  }),
  expression("meta", (writer) => {
    writer.attrU32Net(Nfta.META_KEY, Meta.MARK).attrU32Net(Nfta.META_SREG, register(0));
  }),
];

/** Gives the packet the priority that is in a register. */
export const setPriority = (at: number): Expression =>
  expression("meta", (writer) => {
    writer.attrU32Net(Nfta.META_KEY, Meta.PRIORITY).attrU32Net(Nfta.META_SREG, register(at));
  });
