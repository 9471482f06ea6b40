import type { RangeSet } from "../config/ranges.ts";
import type { Store } from "../store/store.ts";
import { generationMark, givenMark } from "./marks.ts";

/** How many addresses a range set has given, and since when they are counted; milliseconds since 1970. */
export interface Given {
  readonly count: number;
  readonly sinceMs: number;
}

/** Counts an address that the set gives, and answers the generation of its lease. */
export function countGiven(store: Store, network: string, set: RangeSet, nowMs: number): number {
  const mark = givenMark(network, set);
  const { count, sinceMs } = givenOf(store.mark(mark)) ?? { count: 0, sinceMs: nowMs };
  store.setMark(mark, `${count + 1} ${sinceMs}`);
  const generation = Number(store.mark(generationMark) ?? "0") + 1;
  store.setMark(generationMark, String(generation));
  return generation;
}

/** `undefined` where the set has given none since they are counted. */
export function givenOf(mark: string | undefined): Given | undefined {
  const [, count, sinceMs] = /^(\d{1,15}) (\d{1,15})$/.exec(mark ?? "") ?? [];
  return count === undefined ? undefined : { count: Number(count), sinceMs: Number(sinceMs) };
}
