import { bitsOf, type Cidr, type Family, firstOf, ipOf, lastOf } from "../../shared/net/ip.ts";
import type { BlockPeer } from "../../shared/policy/mod.ts";
import type { RulePorts } from "./policies.ts";

/** Both ends included. */
export interface Range {
  readonly first: bigint;
  readonly last: bigint;
}

/** The same numbers in ranges that neither meet nor touch: the kernel refuses a set with ranges that meet. */
export function apart(ranges: readonly Range[]): readonly Range[] {
  const kept: Range[] = [];
  for (const range of ranges.toSorted((a, b) => (a.first < b.first ? -1 : 1))) {
    const before = kept.at(-1);
    if (before === undefined || range.first > before.last + 1n) kept.push(range);
    else if (range.last > before.last) kept[kept.length - 1] = { first: before.first, last: range.last };
  }
  return kept;
}

/** What is left of a range. @param holes apart, in order */
function without(range: Range, holes: readonly Range[]): readonly Range[] {
  const left: Range[] = [];
  let { first } = range;
  for (const hole of holes) {
    if (hole.last < first || hole.first > range.last) continue;
    if (hole.first > first) left.push({ first, last: hole.first - 1n });
    first = hole.last + 1n;
  }
  return first > range.last ? left : [...left, { first, last: range.last }];
}

const rangeOf = (cidr: Cidr): Range => ({ first: firstOf(cidr).value, last: lastOf(cidr).value });

/** The addresses of a family in any of the blocks, each less its own exceptions. */
export function addressesIn(blocks: readonly BlockPeer[], family: Family): readonly Range[] {
  const own = blocks.filter(({ cidr }) => cidr.ip.family === family);
  return apart(
    own.flatMap(({ cidr, except }) =>
      without(rangeOf(cidr), apart(except.filter(({ ip }) => ip.family === family).map(rangeOf))),
    ),
  );
}

/** The same addresses in as few blocks as possible. */
export function blocksIn({ first, last }: Range, family: Family): readonly Cidr[] {
  const blocks: Cidr[] = [];
  for (let at = first; at <= last; ) {
    let bits = 0;
    while (bits < bitsOf(family) && (at >> BigInt(bits)) % 2n === 0n && at + (2n << BigInt(bits)) - 1n <= last) bits++;
    blocks.push({ ip: ipOf(family, at), prefix: bitsOf(family) - bits });
    at += 1n << BigInt(bits);
  }
  return blocks;
}

/** Of IPv4's `protocol` and IPv6's `next header`. */
const protocolNumbers = { TCP: 6, UDP: 17, SCTP: 132 } as const;
const highestPort = 65_535;

/** Ports of one protocol, by its number. */
export interface ProtocolPorts extends Range {
  readonly protocol: number;
}

export function portsIn(ports: readonly RulePorts[]): readonly ProtocolPorts[] {
  return (["TCP", "UDP", "SCTP"] as const).flatMap((protocol) => {
    const ranges = ports
      .filter((each) => each.protocol === protocol)
      .map(({ first = 0, last = first === 0 ? highestPort : first }) => ({ first: BigInt(first), last: BigInt(last) }));
    return apart(ranges).map((range) => ({ protocol: protocolNumbers[protocol], ...range }));
  });
}
