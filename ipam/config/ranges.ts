import { optionalIp } from "../../shared/cni/ip-field.ts";
import { CniCode, CniError } from "../../shared/errors.ts";
import { limits } from "../../shared/limits.ts";
import {
  type Cidr,
  contains,
  firstOf,
  formatCidr,
  formatIp,
  gatewayIn,
  type Ip,
  lastOf,
  parseCidr,
  plus,
} from "../../shared/net/ip.ts";
import type { Fields } from "../../shared/schema/json-fields.ts";
import type { Interval } from "./intervals.ts";

/** One window of addresses to give out, both ends inclusive. */
export interface Range {
  readonly subnet: Cidr;
  readonly start: Ip;
  readonly end: Ip;
  /** Never given out, whether it lies inside the window or not. */
  readonly gateway: Ip;
  /** Blocks of the subnet that are never given out either. */
  readonly exclude: readonly Interval[];
}

/** A pod gets one address of every set. A set's windows are of one family and do not overlap. */
export type RangeSet = readonly [Range, ...Range[]];

/**
 * Reads one range: `subnet` and optionally `rangeStart`, `rangeEnd` and `gateway`, where an empty text counts as
 * absent. Defaults are host-local's: the window is the subnet without its first address and, for IPv4, the last; the
 * gateway is the subnet's second address. A configured gateway may lie anywhere.
 * @throws {CniError} code 7 naming the field
 */
export function parseRange(fields: Fields): Range {
  const subnet = parseSubnet(fields);
  const first = firstOf(subnet);
  const last = lastOf(subnet);
  const lastUsable = subnet.ip.family === 4 ? plus(last, -1n) : last;
  const start = optionalIp(fields, "rangeStart") ?? plus(first, 1n);
  const end = optionalIp(fields, "rangeEnd") ?? lastUsable;
  const inside = `an address in "${formatCidr(subnet)}"`;
  if (!contains(subnet, start)) throw fields.wrong("rangeStart", formatIp(start), inside);
  if (!contains(subnet, end)) throw fields.wrong("rangeEnd", formatIp(end), inside);
  if (start.value > end.value) throw fields.wrong("rangeStart", formatIp(start), `"${formatIp(end)}" or lower`);
  return { subnet, start, end, gateway: optionalIp(fields, "gateway") ?? gatewayIn(subnet), exclude: [] };
}

function parseSubnet(fields: Fields): Cidr {
  const text = fields.string("subnet");
  const subnet = text === undefined ? undefined : parseCidr(text);
  if (subnet === undefined) throw fields.wrong("subnet", text, 'a network, such as "10.1.2.0/24"');
  const longest = subnet.ip.family === 4 ? limits.smallestRangePrefix4 : limits.smallestRangePrefix6;
  if (subnet.prefix > longest)
    throw fields.wrong("subnet", text, `a network with an address to give, /${longest} or larger`);
  const network = firstOf(subnet);
  if (network.value !== subnet.ip.value) {
    throw fields.wrong("subnet", text, `"${formatCidr({ ip: network, prefix: subnet.prefix })}", without host bits`);
  }
  return subnet;
}

/**
 * Makes a set of ranges, and checks that they are of one family and do not overlap.
 * @param path of the set in the document, for errors
 */
export function rangeSetOf(ranges: readonly Range[], document: Fields, path: string): RangeSet {
  const [first, ...others] = ranges;
  if (first === undefined) throw document.refused(path, "empty", "at least one range");
  for (const [i, range] of others.entries()) {
    if (range.subnet.ip.family !== first.subnet.ip.family)
      throw document.refused(path, `${formatRange(first)} and ${formatRange(range)}`, "ranges of one address family");
    const clash = [first, ...others.slice(0, i)].find((earlier) => overlap(earlier, range));
    if (clash !== undefined)
      throw document.refused(path, `${formatRange(clash)} and ${formatRange(range)}`, "ranges that do not overlap");
  }
  return [first, ...others];
}

/** @throws {CniError} code 7 where an address could come out of two sets */
export function requireDisjoint(sets: readonly RangeSet[]): void {
  for (const [i, set] of sets.entries()) {
    for (const [j, earlier] of sets.slice(0, i).entries()) {
      if (!earlier.some((a) => set.some((b) => overlap(a, b)))) continue;
      const is = `range set ${j}, ${formatRangeSet(earlier)}, and range set ${i}, ${formatRangeSet(set)}, overlap`;
      throw new CniError(
        CniCode.invalidConfig,
        `Cannot read the network configuration: ${is}, wanted every address in one set`,
      );
    }
  }
}

const overlap = (a: Range, b: Range): boolean =>
  a.subnet.ip.family === b.subnet.ip.family && a.start.value <= b.end.value && b.start.value <= a.end.value;

export const familyOf = (set: RangeSet): 4 | 6 => set[0].subnet.ip.family;

/** The range of the set that has this address in its window. */
export function rangeOf(set: RangeSet, ip: Ip): Range | undefined {
  return set.find(({ start, end }) => ip.family === start.family && ip.value >= start.value && ip.value <= end.value);
}

/** `start-end`. */
export const formatRange = (range: Range): string => `${formatIp(range.start)}-${formatIp(range.end)}`;

/** Each ADD asks for it, of the same sets as the one before where a daemon runs them. */
const texts = new WeakMap<RangeSet, string>();

/** `start-end[,start-end]`. Also names the set in the store, because its place in the list may change. */
export function formatRangeSet(set: RangeSet): string {
  const known = texts.get(set);
  if (known !== undefined) return known;
  const text = set.map(formatRange).join(",");
  texts.set(set, text);
  return text;
}
