import { bitsOf, type Cidr, type Family, formatCidr, type Ip } from "../../../shared/net/ip.ts";
import { type Bits, type Field, type FieldName, fieldOf, type Need } from "./fields.ts";
import { InvalidFlow } from "./openflow-error.ts";
import { type FieldValue, flagBit, hex, valueFor } from "./values.ts";

/** One field of a match; `mask` has all bits of the field where all of it counts. */
export interface MatchField {
  readonly field: Field;
  readonly value: bigint;
  readonly mask: bigint;
}

/** A field that this client has no name for, as it came. */
export interface UnknownField {
  readonly header: number;
  readonly payload: Uint8Array;
}

/** What a flow matches: each field at most once, in the order of the table of fields. Made by `match()` and by decoding. */
export interface Match {
  readonly fields: readonly MatchField[];
  readonly unknown: readonly UnknownField[];
}

export const matchAll: Match = { fields: [], unknown: [] };

const etherTypes = { ip: 0x0800, arp: 0x0806, ipv6: 0x86dd, rarp: 0x8035 } as const;
const protocols = { icmp: [4, 1], tcp: [4, 6], udp: [4, 17], sctp: [4, 132] } as const;
const protocols6 = { icmp6: [6, 58], tcp6: [6, 6], udp6: [6, 17], sctp6: [6, 132] } as const;
const transports = { ...protocols, ...protocols6 } as const;

/** The words by which ovs-ofctl names a protocol. */
export type Protocol = keyof typeof etherTypes | keyof typeof transports;

/** Starts a match: `match().protocol("tcp").cidr("ip_dst", net).set("tcp_dst", 80).build()`. */
export const match = (): MatchBuilder => new MatchBuilder();

/**
 * Collects what a flow is to match. Bits of one field given one after the other come together; bits that contradict
 * one another, values that the field cannot have and masks that it does not take are refused at once, and what a field
 * needs beside it (an IP address: that the packet is IP) by `build`.
 */
export class MatchBuilder {
  /** In the order of the table of fields. There are few: a loop over them is cheaper than to sort them in the end. */
  readonly #found: MatchField[] = [];

  /** A whole field. @throws {InvalidFlow} */
  set(name: FieldName, value: FieldValue): this {
    const field = fieldOf(name);
    return this.#add(field, valueFor(field, value), field.ones);
  }

  /** The bits of a field that `mask` has. @throws {InvalidFlow} */
  masked(name: FieldName, value: FieldValue, mask: FieldValue): this {
    const field = fieldOf(name);
    return this.#add(field, valueFor(field, value), valueFor(field, mask));
  }

  /** Some consecutive bits, as `bits("reg0", 0, 15)` names them. @throws {InvalidFlow} */
  bits({ field, from, count }: Bits, value: number | bigint): this {
    const number = BigInt(value);
    if (number < 0n || number >> BigInt(count) !== 0n) {
      throw new InvalidFlow(`a match of ${field.name}`, `${hex(number)} is given, wanted ${count} bits`);
    }
    return this.#add(field, number << BigInt(from), ((1n << BigInt(count)) - 1n) << BigInt(from));
  }

  /** A network, in a field that is an address. Host bits of `cidr` are left out. @throws {InvalidFlow} */
  cidr(name: FieldName, cidr: Cidr): this {
    const field = fieldOf(name);
    const value = valueFor(field, cidr.ip);
    const width = bitsOf(cidr.ip.family);
    const mask = ((1n << BigInt(cidr.prefix)) - 1n) << BigInt(width - cidr.prefix);
    if (field.bits !== width) {
      throw new InvalidFlow(`a match of ${name}`, `"${formatCidr(cidr)}" is given, wanted ${field.bits} bits`);
    }
    return mask === 0n ? this : this.#add(field, value & mask, mask);
  }

  /** Ethertype and, where the word says one, IP protocol. @throws {InvalidFlow} */
  protocol(name: Protocol): this {
    if (name in etherTypes) return this.set("eth_type", etherTypes[name as keyof typeof etherTypes]);
    const [family, number] = transports[name as keyof typeof transports];
    return this.protocol(family === 4 ? "ip" : "ipv6").set("nw_proto", number);
  }

  /** `ip` or `ipv6`. */
  family(family: Family): this {
    return this.protocol(family === 4 ? "ip" : "ipv6");
  }

  /** The packet's address, in the field of its family; says nothing of the ethertype. @throws {InvalidFlow} */
  source(ip: Ip): this {
    return this.set(ip.family === 4 ? "ip_src" : "ipv6_src", ip);
  }

  destination(ip: Ip): this {
    return this.set(ip.family === 4 ? "ip_dst" : "ipv6_dst", ip);
  }

  /** The connection's state: `+new-rpl+trk` (ovs-fields(7), ct_state). @throws {InvalidFlow} */
  ctState(text: string): this {
    return this.#flags("ct_state", "ct-state", text);
  }

  /** `+syn-ack`. @throws {InvalidFlow} */
  tcpFlags(text: string): this {
    return this.#flags("tcp_flags", "tcp-flags", text);
  }

  /** `0x1000` on top of the VLAN's number says that there is a tag (OpenFlow 1.5.1, 7.2.3.8). @throws {InvalidFlow} */
  vlan(id: number | "none" | "any"): this {
    if (id === "none") return this.set("vlan_vid", 0);
    return id === "any" ? this.masked("vlan_vid", 0x1000, 0x1000) : this.set("vlan_vid", 0x1000 | id);
  }

  /** @throws {InvalidFlow} where a field lacks what it needs beside it */
  build(): Match {
    const built: Match = { fields: this.list(), unknown: [] };
    for (const { field } of built.fields) {
      const missing = missingFor(field, built);
      if (missing !== undefined) throw new InvalidFlow(`a match of ${field.name}`, missing);
    }
    return built;
  }

  /** What is there so far, unchecked, in the order of the table of fields. */
  list(): readonly MatchField[] {
    return this.#found.slice();
  }

  /** For decoding: bits that came, without what a person may do wrong. `false` where they contradict earlier ones. */
  take(field: Field, value: bigint, mask: bigint): boolean {
    if (mask === 0n) return true;
    if (field.registers !== undefined) {
      return singleRegisters(field, value, mask).every((part) => this.take(part.field, part.value, part.mask));
    }
    const found = this.#found;
    let at = 0;
    while ((found[at]?.field.rank ?? field.rank) < field.rank) at++;
    const before = found[at];
    if (before?.field !== field) found.splice(at, 0, { field, value, mask });
    else if (((before.value ^ value) & before.mask & mask) !== 0n) return false;
    else found[at] = { field, value: before.value | value, mask: before.mask | mask };
    return true;
  }

  #flags(name: "ct_state" | "tcp_flags", notation: "ct-state" | "tcp-flags", text: string): this {
    const parts = text.match(/[+-][a-z]+/g);
    if (parts === null || parts.join("") !== text) {
      throw new InvalidFlow(`a match of ${name}`, `"${text}" is given, wanted flags like "+new-rpl"`);
    }
    for (const part of parts) {
      const bit = flagBit(notation, part.slice(1));
      if (bit === undefined) throw new InvalidFlow(`a match of ${name}`, `there is no flag "${part.slice(1)}"`);
      this.#add(fieldOf(name), part.startsWith("+") ? bit : 0n, bit);
    }
    return this;
  }

  #add(field: Field, value: bigint, mask: bigint): this {
    const refused = (is: string): InvalidFlow => new InvalidFlow(`a match of ${field.name}`, is);
    if (mask === 0n) throw refused("the mask is 0, wanted a bit at least");
    if (mask !== field.ones) {
      if (!field.maskable) throw refused("a mask is given, wanted the whole field");
      if ((value & ~mask) !== 0n) throw refused(`the value ${hex(value)} has bits that the mask ${hex(mask)} has not`);
    }
    if (!this.take(field, value, mask)) throw refused(`${hex(value)} is wanted in place of what it was given before`);
    return this;
  }
}

/** A match speaks of single registers only, as the switch answers in pairs whatever it was told. */
function singleRegisters(field: Field, value: bigint, mask: bigint): readonly MatchField[] {
  const parts: MatchField[] = [];
  const { first, count } = field.registers ?? { first: 0, count: 0 };
  for (let i = 0; i < count; i++) {
    const shift = BigInt(32 * (count - 1 - i));
    const part = (mask >> shift) & 0xffff_ffffn;
    if (part === 0n) continue;
    parts.push({ field: fieldOf(`reg${first + i}` as FieldName), value: (value >> shift) & part, mask: part });
  }
  return parts;
}

/** The value of a field where all of it is matched. */
export function exactly(of: Match, name: FieldName): bigint | undefined {
  const found = of.fields.find(({ field }) => field.name === name);
  return found !== undefined && found.mask === found.field.ones ? found.value : undefined;
}

/** What keeps `field` from meaning anything under this match, in words; `undefined` where nothing does. */
export function missingFor(field: Field, under: Match): string | undefined {
  if (field.need === undefined) return undefined;
  const wanted = needs[field.need];
  return wanted.holds(under) ? undefined : `it needs ${wanted.words}, which the match does not say`;
}

const type = (under: Match): number => Number(exactly(under, "eth_type") ?? -1n);
const isIp = (under: Match): boolean => type(under) === etherTypes.ip || type(under) === etherTypes.ipv6;
const isProtocol = (number: number) => (under: Match) => isIp(under) && exactly(under, "nw_proto") === BigInt(number);
const isIcmp6 = (under: Match): boolean => type(under) === etherTypes.ipv6 && isProtocol(58)(under);
const icmp6Type = (under: Match): bigint | undefined => (isIcmp6(under) ? exactly(under, "icmpv6_type") : undefined);
const isTagged = (under: Match): boolean =>
  under.fields.some(({ field, value, mask }) => field.name === "vlan_vid" && (value & mask & 0x1000n) !== 0n);
/** As Open vSwitch decides: a state that only a connection has (all but inv and trk), or tracked and not invalid. */
const isTracked = (under: Match): boolean =>
  isIp(under) &&
  under.fields.some(({ field, value, mask }) => {
    if (field.name !== "ct_state") return false;
    return (value & 0xcfn) !== 0n || ((value & 0x20n) !== 0n && (mask & 0x10n) !== 0n && (value & 0x10n) === 0n);
  });

const needs: Readonly<Record<Need, { readonly words: string; holds(under: Match): boolean }>> = {
  ip4: { words: 'protocol "ip"', holds: (under) => type(under) === etherTypes.ip },
  ip6: { words: 'protocol "ipv6"', holds: (under) => type(under) === etherTypes.ipv6 },
  ip: { words: 'protocol "ip" or "ipv6"', holds: isIp },
  arp: { words: 'protocol "arp"', holds: (under) => type(under) === etherTypes.arp || type(under) === etherTypes.rarp },
  tcp: { words: 'protocol "tcp" or "tcp6"', holds: isProtocol(6) },
  udp: { words: 'protocol "udp" or "udp6"', holds: isProtocol(17) },
  sctp: { words: 'protocol "sctp" or "sctp6"', holds: isProtocol(132) },
  icmp4: { words: 'protocol "icmp"', holds: (under) => type(under) === etherTypes.ip && isProtocol(1)(under) },
  icmp6: { words: 'protocol "icmp6"', holds: isIcmp6 },
  vlan: { words: "a VLAN tag", holds: isTagged },
  nd: { words: "icmpv6_type 135 or 136", holds: (u) => icmp6Type(u) === 135n || icmp6Type(u) === 136n },
  "nd-solicit": { words: "icmpv6_type 135", holds: (under) => icmp6Type(under) === 135n },
  "nd-advert": { words: "icmpv6_type 136", holds: (under) => icmp6Type(under) === 136n },
  tracked: { words: 'protocol "ip" or "ipv6" and ct_state "+est", "-inv+trk" or the like', holds: isTracked },
};
