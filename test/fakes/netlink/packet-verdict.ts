import type { Attributes } from "../../../agent/protocols/netlink/message-reader.ts";
import {
  Comparison,
  LOOKUP_INVERTED,
  Meta,
  Nfta,
  Register,
  Verdict,
} from "../../../agent/protocols/netlink/nftables/numbers.ts";
import type { RuleInMemory, TableInMemory } from "./packet-filter.ts";

/** What a table's rules do with a frame. */
export interface Decision {
  readonly does: "accept" | "drop" | "reject";
  /** Comment of the rule that has decided; none had to. */
  readonly by?: string;
  readonly isCounted: boolean;
}

export interface Passing {
  /** Index of the interface that it comes in by. */
  readonly iif?: number;
  /** Its name, and the number of the group that it is in. */
  readonly iifname?: string;
  readonly iifgroup?: number;
  /** What the destination is to it (RTN_*). */
  readonly destination?: number;
  /** Name of the one that it leaves by. */
  readonly oifname?: string;
  /** With its Ethernet header. */
  readonly frame: Uint8Array;
}

/** Runs the rules that stand at a hook over a frame, as the kernel does (nf_tables_core.c, nft_payload.c, nft_exthdr.c). */
export function decide(table: TableInMemory, hook: number, passing: Passing): Decision {
  const bases = [...table.chains.values()]
    .filter((chain) => chain.hook?.number === hook)
    .sort((a, b) => (a.hook?.priority ?? 0) - (b.hook?.priority ?? 0));
  for (const base of bases) {
    const decision = inChain(table, base.rules, new Packet(passing));
    if (decision !== undefined && decision.does !== "accept") return decision;
    if (decision !== undefined && base === bases.at(-1)) return decision;
  }
  return { does: "accept", isCounted: false };
}

function inChain(table: TableInMemory, rules: readonly RuleInMemory[], packet: Packet): Decision | undefined {
  for (const { expressions, comment } of rules) {
    const registers = new Uint8Array(64);
    let isCounted = false;
    for (const one of expressions) {
      const name = one.text(Nfta.EXPR_NAME);
      const data = one.nested(Nfta.EXPR_DATA);
      if (data === undefined) throw new Error(`Broken invariant: "${name}" has no data`);
      if (name === "counter") isCounted = true;
      else if (name === "reject") return { does: "reject", by: comment, isCounted };
      else if (name === "immediate") {
        const verdict = data.nested(Nfta.IMMEDIATE_DATA)?.nested(Nfta.DATA_VERDICT);
        const code = number(verdict, Nfta.VERDICT_CODE);
        if (code !== Verdict.goto) return { does: code === Verdict.drop ? "drop" : "accept", by: comment, isCounted };
        return inChain(table, table.chains.get(verdict?.text(Nfta.VERDICT_CHAIN) ?? "")?.rules ?? [], packet);
      } else if (!passes(name ?? "", data, registers, table, packet)) break;
    }
  }
  return undefined;
}

const number = (of: Attributes | undefined, type: number): number => {
  const bytes = of?.bytes(type);
  return bytes === undefined ? 0 : new DataView(bytes.buffer, bytes.byteOffset).getInt32(0);
};

const at = (of: Attributes, register: number): number => 4 * (number(of, register) - Register.FIRST);

function passes(name: string, of: Attributes, registers: Uint8Array, { sets }: TableInMemory, packet: Packet): boolean {
  const load = (register: number, value: Uint8Array | undefined): boolean => {
    if (value === undefined) return false;
    const padded = new Uint8Array(Math.ceil(value.length / 4) * 4);
    padded.set(value);
    registers.set(padded, at(of, register));
    return true;
  };
  switch (name) {
    case "payload": {
      const [offset, length] = [number(of, Nfta.PAYLOAD_OFFSET), number(of, Nfta.PAYLOAD_LEN)];
      return load(Nfta.PAYLOAD_DREG, packet.bytes(number(of, Nfta.PAYLOAD_BASE), offset, length));
    }
    case "meta":
      return load(Nfta.META_DREG, packet.meta(number(of, Nfta.META_KEY)));
    case "fib":
      return load(Nfta.FIB_DREG, native(packet.destination));
    case "exthdr":
      return load(Nfta.EXTHDR_DREG, Uint8Array.of(packet.hasHeader(of.u8(Nfta.EXTHDR_TYPE) ?? -1) ? 1 : 0));
    case "bitwise": {
      const mask = of.nested(Nfta.BITWISE_MASK)?.bytes(Nfta.DATA_VALUE) ?? new Uint8Array(0);
      const start = at(of, Nfta.BITWISE_SREG);
      mask.forEach((byte, i) => {
        registers[start + i] = (registers[start + i] ?? 0) & byte;
      });
      return true;
    }
    case "cmp": {
      const value = of.nested(Nfta.CMP_DATA)?.bytes(Nfta.DATA_VALUE) ?? new Uint8Array(0);
      const start = at(of, Nfta.CMP_SREG);
      const order = Buffer.compare(registers.subarray(start, start + value.length), value);
      return comparisons[number(of, Nfta.CMP_OP)]?.(order) ?? false;
    }
    case "lookup": {
      const set = sets.get(of.text(Nfta.LOOKUP_SET) ?? "");
      if (set === undefined) throw new Error(`Broken invariant: no set "${of.text(Nfta.LOOKUP_SET)}"`);
      const start = at(of, Nfta.LOOKUP_SREG);
      const isThere = set.elements.has(registers.subarray(start, start + set.keyBytes).toHex());
      return isThere !== (number(of, Nfta.LOOKUP_FLAGS) === LOOKUP_INVERTED);
    }
    default:
      throw new Error(`Broken invariant: no such expression as "${name}"`);
  }
}

const comparisons: Readonly<Record<number, (order: number) => boolean>> = {
  [Comparison.eq]: (order) => order === 0,
  [Comparison.neq]: (order) => order !== 0,
  [Comparison.lt]: (order) => order < 0,
  [Comparison.lte]: (order) => order <= 0,
  [Comparison.gt]: (order) => order > 0,
  [Comparison.gte]: (order) => order >= 0,
};

const native = (value: number): Uint8Array => new Uint8Array(Uint32Array.of(value).buffer);

const etherBytes = 14;
/** Of IPv6: those that the kernel looks behind here, authentication (51) not among them. */
const walked = [0, 43, 44, 60];
const fragmentHeader = 44;

/** A frame as the kernel has read it: what is not whole has no upper protocol. */
class Packet {
  readonly #passing: Passing;
  readonly #network: Uint8Array;
  readonly #type: number;
  readonly #headers: readonly number[];
  readonly #upper: { readonly protocol: number; readonly offset: number; readonly isLater: boolean } | undefined;

  constructor(passing: Passing) {
    this.#passing = passing;
    const { frame } = passing;
    this.#network = frame.subarray(etherBytes);
    this.#type = ((frame[12] ?? 0) << 8) | (frame[13] ?? 0);
    const headers: number[] = [];
    this.#upper = this.#type === 0x0800 ? this.#upper4() : this.#type === 0x86dd ? this.#upper6(headers) : undefined;
    this.#headers = headers;
  }

  /** @param base 0: of the link, 1: of the network, 2: of the transport */
  bytes(base: number, offset: number, length: number): Uint8Array | undefined {
    if (base === 2 && (this.#upper === undefined || this.#upper.isLater)) return undefined;
    const whole = base === 0 ? this.#passing.frame : this.#network;
    const start = offset + (base === 2 ? (this.#upper?.offset ?? 0) : 0);
    return start + length > whole.length ? undefined : whole.slice(start, start + length);
  }

  meta(key: number): Uint8Array | undefined {
    if (key === Meta.L4PROTO) return this.#upper === undefined ? undefined : Uint8Array.of(this.#upper.protocol);
    if (key === Meta.NFPROTO) return Uint8Array.of(this.#type === 0x0800 ? 2 : 10);
    const { iif = 0, iifgroup = 0, iifname = "", oifname = "" } = this.#passing;
    if (key === Meta.IIF) return native(iif);
    if (key === Meta.IIFGROUP) return native(iifgroup);
    if (key !== Meta.OIFNAME && key !== Meta.IIFNAME) throw new Error(`Broken invariant: no such meta key as ${key}`);
    const name = new Uint8Array(16);
    new TextEncoder().encodeInto(key === Meta.OIFNAME ? oifname : iifname, name);
    return name;
  }

  get destination(): number {
    return this.#passing.destination ?? 1;
  }

  hasHeader(number: number): boolean {
    return this.#headers.includes(number);
  }

  #u16(offset: number): number {
    return ((this.#network[offset] ?? 0) << 8) | (this.#network[offset + 1] ?? 0);
  }

  #upper4() {
    const head = this.#network[0] ?? 0;
    const offset = (head & 15) * 4;
    const length = this.#u16(2);
    if (head >> 4 !== 4 || offset < 20 || length > this.#network.length || length < offset) return undefined;
    return { protocol: this.#network[9] ?? 0, offset, isLater: (this.#u16(6) & 0x1fff) !== 0 };
  }

  #upper6(headers: number[]) {
    if ((this.#network[0] ?? 0) >> 4 !== 6 || this.#network.length < 40) return undefined;
    if (this.#u16(4) + 40 > this.#network.length) return undefined;
    let protocol = this.#network[6] ?? 0;
    let offset = 40;
    while (walked.includes(protocol)) {
      headers.push(protocol);
      const next = this.#network[offset] ?? 0;
      if (protocol === fragmentHeader && this.#u16(offset + 2) >> 3 !== 0)
        return walked.includes(next) ? undefined : { protocol: next, offset: offset + 8, isLater: true };
      offset += protocol === fragmentHeader ? 8 : 8 * ((this.#network[offset + 1] ?? 0) + 1);
      protocol = next;
      if (offset > this.#network.length) return undefined;
    }
    return { protocol, offset, isLater: false };
  }
}
