import type { CountedCode } from "./counted-code.ts";

/** More than the product has branches, functions and statements. */
const maxCounters = 1 << 17;

interface Counters {
  readonly hits: Uint32Array;
  used: number;
}

/** Of the whole process: instrumented code knows the array by its global name. */
const name = "__hits";
const state: Counters = { hits: new Uint32Array(maxCounters), used: 0 };
Object.defineProperty(globalThis, name, { value: state.hits, configurable: true });

/** Gives the next free counters to a file. */
export function takeCounters(instrument: (array: string, first: number) => CountedCode): string {
  const { code, counters } = instrument(name, state.used);
  state.used += counters;
  if (state.used > maxCounters) throw new Error(`Cannot count: ${state.used} counters, wanted at most ${maxCounters}`);
  return code;
}

/** Counters that there are: of every file that has been loaded. */
export const countersThere = (): number => state.used;

export function clearHits(): void {
  state.hits.fill(0, 0, state.used);
}

/** Once, twice, up to 3, 7, 15, 31, 127 times, more often: a loop that runs differently is something new. */
const degree = (hits: number): number => (hits < 4 ? hits : hits < 128 ? 34 - Math.clz32(hits) : 9);

/** What has been reached since `clearHits`: pairs of counter and degree, each as one number. */
export function featuresHit(): number[] {
  const found: number[] = [];
  const { hits, used } = state;
  for (let i = 0; i < used; i++) {
    const count = hits[i] as number;
    if (count !== 0) found.push(i * 16 + degree(count));
  }
  return found;
}
