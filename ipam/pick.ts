import { type Ip, plus, sameIp } from "../shared/ip.ts";
import { type RangeSet, rangeOf } from "./config/ranges.ts";
import type { Lease } from "./lease.ts";
import type { Store } from "./store/store.ts";

interface Window {
  readonly from: Ip;
  readonly to: Ip;
}

/**
 * The next free address of the set after `last`, in the order of its ranges and round again, `last`
 * itself at the end; from the beginning where `last` is unknown or not in the set any more.
 * One look-up for each range and each reserved address on the way, however many leases there are.
 */
export function nextAddress(
  store: Store,
  network: string,
  set: RangeSet,
  reserved: readonly Ip[],
  last: Ip | undefined,
): Ip | undefined {
  for (const { from, to } of windowsAfter(set, last)) {
    let ip = store.nextFree(network, from);
    while (ip.value <= to.value && reserved.some((other) => sameIp(other, ip)))
      ip = store.nextFree(network, plus(ip, 1n));
    if (ip.value <= to.value) return ip;
  }
  return undefined;
}

function windowsAfter(set: RangeSet, last: Ip | undefined): readonly Window[] {
  const whole = set.map((range): Window => ({ from: range.start, to: range.end }));
  const at = last === undefined ? undefined : rangeOf(set, last);
  if (last === undefined || at === undefined) return whole;
  const i = set.indexOf(at);
  return [
    { from: plus(last, 1n), to: at.end },
    ...whole.slice(i + 1),
    ...whole.slice(0, i),
    { from: at.start, to: last },
  ];
}

/** The lease of the set that cools longest. */
export function longestCooling(
  store: Store,
  network: string,
  set: RangeSet,
  reserved: readonly Ip[],
): Lease | undefined {
  const candidates = set.flatMap((range) =>
    store.select({
      by: "cooling",
      network,
      releasedByMs: Number.MAX_SAFE_INTEGER,
      within: { from: range.start, to: range.end },
      // An address may have become a gateway since it was given out.
      limit: reserved.length + 1,
    }),
  );
  return candidates
    .filter((lease) => !reserved.some((ip) => sameIp(ip, lease.address.ip)))
    .sort((a, b) => (a.releasedAtMs ?? 0) - (b.releasedAtMs ?? 0) || a.generation - b.generation)[0];
}
