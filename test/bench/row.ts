import { bringInto, type CacheState, cacheStates } from "./page-cache.ts";
import { type Summary, summarize } from "./stats.ts";

/** One line of the benchmark's table: a budget of the design and what was measured for it. */
export interface Row {
  readonly measure: string;
  /** What is held against budget and aim: a ratio to the peer, or an absolute figure in `unit`. */
  readonly value: number;
  readonly unit: "ratio" | "ms" | "MB" | "count";
  /** Absent where the figure is there to hold others against. */
  readonly budget?: number;
  readonly aim?: number;
  readonly ours?: Summary;
  readonly peer?: Summary;
  readonly peerName?: string;
  /** How the executables lay in the page cache, where that was seen to. */
  readonly cache?: CacheState;
}

export const passes = (row: Row): boolean => row.budget === undefined || row.value <= row.budget;

/** A side of a comparison: does the thing once and answers how long it took, in milliseconds. */
export type Timed = (round: number) => Promise<number> | number;

export interface Comparison {
  readonly measure: string;
  readonly budget?: number;
  readonly aim?: number;
  readonly rounds: number;
  readonly ours: Timed;
  readonly peer: Timed;
  readonly peerName: string;
}

/**
 * Runs both sides in turn, so that a machine whose speed drifts does so for both; who goes first
 * alternates. The first round warms up and does not count.
 */
export async function compare(comparison: Comparison): Promise<Row> {
  const ours: number[] = [];
  const peer: number[] = [];
  for (let round = 0; round <= comparison.rounds; round++) {
    const oursFirst = round % 2 === 0;
    const first = await (oursFirst ? comparison.ours : comparison.peer)(round);
    const second = await (oursFirst ? comparison.peer : comparison.ours)(round);
    if (round === 0) continue;
    ours.push(oursFirst ? first : second);
    peer.push(oursFirst ? second : first);
  }
  const { measure, budget, aim, peerName } = comparison;
  const held = budget === undefined || aim === undefined ? {} : { budget, aim };
  const [a, b] = [summarize(ours), summarize(peer)];
  return { measure, ...held, peerName, unit: "ratio", ours: a, peer: b, value: a.median / b.median };
}

/** A comparison of programs that are started, and the measurements that come of its calls beside the one that is compared. */
export interface InBothStates extends Comparison {
  /** Of both sides. */
  readonly executables: readonly string[];
  /** In which states the budget holds; absent: in both. */
  readonly heldIn?: readonly CacheState[];
}

/** The same comparison in each state of the page cache. @param besides further rows of what was just measured */
export async function compareInBothStates(
  { executables, heldIn = cacheStates, budget, aim, ...comparison }: InBothStates,
  besides: () => readonly Row[] = () => [],
): Promise<Row[]> {
  const rows: Row[] = [];
  for (const cache of cacheStates) {
    await bringInto(cache, executables);
    const held = budget === undefined || aim === undefined || !heldIn.includes(cache) ? {} : { budget, aim };
    const row = await compare({ ...comparison, ...held });
    for (const each of [row, ...besides()]) rows.push({ ...each, cache });
  }
  return rows;
}
