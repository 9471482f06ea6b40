import { formatIp, type Ip, plus } from "../../shared/net/ip.ts";

/** An unbroken run of addresses of one family, both ends included. */
export interface Interval {
  readonly first: Ip;
  readonly last: Ip;
}

/** In order, IPv4 before IPv6; none touches or overlaps the next. Only `intervalsOf` makes such a list. */
export type Intervals = readonly Interval[];

/** Sorts runs and joins those that overlap or touch; a block costs as much as a single address. */
export function intervalsOf(runs: readonly Interval[]): Intervals {
  const joined: Interval[] = [];
  for (const run of [...runs].sort((a, b) => compare(a.first, b.first))) {
    const before = joined.at(-1);
    if (before === undefined || compare(run.first, plus(before.last, 1n)) > 0) joined.push(run);
    else if (compare(run.last, before.last) > 0) joined[joined.length - 1] = { first: before.first, last: run.last };
  }
  return joined;
}

/** The run that this address lies in. */
export function intervalAt(intervals: Intervals, ip: Ip): Interval | undefined {
  let low = 0;
  let high = intervals.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (compare((intervals[middle] as Interval).last, ip) < 0) low = middle + 1;
    else high = middle;
  }
  const run = intervals[low];
  return run !== undefined && compare(run.first, ip) <= 0 ? run : undefined;
}

/** The lowest address that is `ip` or above and in none of the runs; may lie beyond the family's last. */
export function pastIntervals(intervals: Intervals, ip: Ip): Ip {
  const run = intervalAt(intervals, ip);
  return run === undefined ? ip : plus(run.last, 1n);
}

/** The parts of one run that the other runs do not cover. */
export function without({ first, last }: Interval, intervals: Intervals): Intervals {
  const left: Interval[] = [];
  let from = first;
  for (const run of intervals) {
    if (compare(run.last, from) < 0) continue;
    if (compare(run.first, last) > 0) break;
    if (compare(from, run.first) < 0) left.push({ first: from, last: plus(run.first, -1n) });
    from = plus(run.last, 1n);
  }
  if (compare(from, last) <= 0) left.push({ first: from, last });
  return left;
}

export const overlap = (a: Interval, b: Interval): boolean =>
  compare(a.first, b.last) <= 0 && compare(b.first, a.last) <= 0;

/** How many addresses they hold. */
export const countOf = (intervals: Intervals): bigint =>
  intervals.reduce((sum, { first, last }) => sum + last.value - first.value + 1n, 0n);

/** `first-last`, or the one address. */
export const formatInterval = ({ first, last }: Interval): string =>
  first.value === last.value ? formatIp(first) : `${formatIp(first)}-${formatIp(last)}`;

/** IPv4 sorts before IPv6. */
function compare(a: Ip, b: Ip): number {
  if (a.family !== b.family) return a.family - b.family;
  return a.value < b.value ? -1 : a.value > b.value ? 1 : 0;
}
