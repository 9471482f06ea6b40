import { type Ip, plus } from "../../shared/net/ip.ts";
import { type Intervals, intervalAt, pastIntervals } from "../config/intervals.ts";
import { type Range, type RangeSet, rangeOf } from "../config/ranges.ts";
import type { Lease } from "../lease.ts";
import type { Store } from "../store/store.ts";

interface Window {
  readonly from: Ip;
  readonly to: Ip;
}

/**
 * The next free address of the set after `last`, in the order of its ranges and round again, `last` itself at the end;
 * from the beginning where `last` is unknown or not in the set any more. It costs one look-up for each range and each
 * reserved run that is passed, however many leases there are.
 */
export function nextAddress(
  store: Store,
  network: string,
  set: RangeSet,
  reserved: Intervals,
  last: Ip | undefined,
): Ip | undefined {
  const firstIn = (from: Ip, to: Ip): Ip | undefined => firstFree(store, network, reserved, { from, to });
  const firstOfAll = (ranges: readonly Range[]): Ip | undefined => {
    for (const { start, end } of ranges) {
      const ip = firstIn(start, end);
      if (ip !== undefined) return ip;
    }
    return undefined;
  };
  const at = last === undefined ? undefined : rangeOf(set, last);
  if (last === undefined || at === undefined) return firstOfAll(set);
  const next = firstIn(plus(last, 1n), at.end);
  if (next !== undefined) return next;
  const i = set.indexOf(at);
  return firstOfAll([...set.slice(i + 1), ...set.slice(0, i)]) ?? firstIn(at.start, last);
}

function firstFree(store: Store, network: string, reserved: Intervals, { from, to }: Window): Ip | undefined {
  let ip = pastIntervals(reserved, from);
  while (ip.value <= to.value) {
    const free = store.nextFree(network, ip);
    ip = pastIntervals(reserved, free);
    if (ip.value === free.value && ip.value <= to.value) return ip;
  }
  return undefined;
}

/** Whether an ADD would find an address in this set, free or cooling. Costs as many look-ups as the ADD. */
export const hasAddress = (store: Store, network: string, set: RangeSet, reserved: Intervals): boolean =>
  nextAddress(store, network, set, reserved, undefined) !== undefined ||
  longestCooling(store, network, set, reserved) !== undefined;

/** Leases of the first look: enough where every pod releases one address of each set, which is the usual case. */
const firstLook = 8;
/** Leases that are examined one by one before the store has to search all of them. */
const maxLooked = 4096;

/** The lease of the set that cools longest. */
export function longestCooling(store: Store, network: string, set: RangeSet, reserved: Intervals): Lease | undefined {
  const oldest = set.flatMap((range) => longestIn(store, network, { from: range.start, to: range.end }, reserved));
  return oldest.sort(byAge)[0];
}

/**
 * The oldest cooling leases of the network may all belong to other range sets, and a window may have very many leases
 * of which none cools. So both searches advance in turn, with growing steps, and the one that finishes first gives the
 * answer.
 */
function longestIn(store: Store, network: string, within: Window, reserved: Intervals): readonly Lease[] {
  const releasedByMs = Number.MAX_SAFE_INTEGER;
  const isOpen = ({ state, address: { ip } }: Lease): boolean =>
    state === "cooling" && isIn(within, ip) && intervalAt(reserved, ip) === undefined;
  for (let limit = firstLook; limit <= maxLooked; limit *= firstLook) {
    const oldest = store.select({ by: "cooling", network, releasedByMs, limit });
    const open = oldest.find(isOpen);
    if (open !== undefined) return [open];
    if (oldest.length < limit) return [];
    const own = store.select({ by: "window", network, ...within, limit });
    if (own.length < limit) return own.filter(isOpen).sort(byAge).slice(0, 1);
  }
  for (let limit = firstLook; ; limit *= firstLook) {
    const found = store.select({ by: "cooling", network, releasedByMs, within, limit });
    const open = found.find(isOpen);
    if (open !== undefined) return [open];
    if (found.length < limit) return [];
  }
}

const isIn = ({ from, to }: Window, ip: Ip): boolean =>
  ip.family === from.family && ip.value >= from.value && ip.value <= to.value;

/** The longest released first. */
const byAge = (a: Lease, b: Lease): number =>
  (a.releasedAtMs ?? 0) - (b.releasedAtMs ?? 0) || a.generation - b.generation;
