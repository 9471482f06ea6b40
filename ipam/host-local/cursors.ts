import { type Ip, parseIp } from "../../shared/net/ip.ts";
import { inheritedCursorMark } from "../allocate/marks.ts";
import type { Lease } from "../lease.ts";
import type { Store } from "../store/store.ts";
import { readRecord } from "./record.ts";

/**
 * The address that each range set of a network gave out last, by the set's place in the configuration, which is how
 * host-local names them: the youngest lease of the set, and where it has given out none since the take-over what came
 * along then. An allocation clears away no lease of its network but older ones, so the youngest is always there.
 */
export function cursorsOf(store: Store, network: string, leases: readonly Lease[]): ReadonlyMap<number, Ip> {
  const record = readRecord(store, network);
  const since = record === undefined || record.t === "none" ? 0 : record.generation;
  const youngest = new Map<number, Lease>();
  for (const lease of leases) {
    const before = youngest.get(lease.rangeSet)?.generation ?? since;
    if (lease.generation > before) youngest.set(lease.rangeSet, lease);
  }
  const cursors = new Map<number, Ip>();
  for (let rangeSet = 0; ; rangeSet++) {
    const inherited = parseIp(store.mark(inheritedCursorMark(network, rangeSet)) ?? "");
    const ip = youngest.get(rangeSet)?.address.ip ?? inherited;
    if (ip !== undefined) cursors.set(rangeSet, ip);
    else if (rangeSet > Math.max(-1, ...youngest.keys())) return cursors;
  }
}
