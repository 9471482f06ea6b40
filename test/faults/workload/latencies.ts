import { summarize } from "../../bench/stats.ts";
import type { StressVerb } from "../node/stress-node.ts";

/** How long the calls of one verb took, in milliseconds. */
export interface VerbLatency {
  readonly verb: StressVerb;
  readonly n: number;
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
  /** The fault under which the longest ran. */
  readonly under?: string;
  readonly deadline: number;
}

interface Calls {
  readonly ms: number[];
  longest: number;
  under: string | undefined;
}

/** The times of all calls of a run, by verb. */
export class Latencies {
  readonly #verbs = new Map<StressVerb, Calls>();

  add(verb: StressVerb, ms: number, under?: string): void {
    const calls = this.#verbs.get(verb) ?? { ms: [], longest: 0, under: undefined };
    this.#verbs.set(verb, calls);
    calls.ms.push(ms);
    if (ms <= calls.longest) return;
    calls.longest = ms;
    calls.under = under;
  }

  get calls(): number {
    return [...this.#verbs.values()].reduce((sum, { ms }) => sum + ms.length, 0);
  }

  table(deadlineMs: Readonly<Record<StressVerb, number>>): readonly VerbLatency[] {
    return [...this.#verbs].map(([verb, { ms, under }]) => {
      const { n, median, p99, max } = summarize(ms);
      const during = under === undefined ? {} : { under };
      return { verb, n, p50: median, p99, max, ...during, deadline: deadlineMs[verb] };
    });
  }
}

/** For people. */
export function latencyLines(table: readonly VerbLatency[]): readonly string[] {
  const head = ["verb", "calls", "p50", "p99", "max", "deadline", ""];
  const body = table.map(({ verb, n, p50, p99, max, deadline, under }) => [
    ...[verb, String(n), ...[p50, p99, max, deadline].map((ms) => `${Math.round(ms)} ms`)],
    under === undefined ? "" : `the longest under: ${under}`,
  ]);
  const rows = [head, ...body];
  const widths = head.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows.map((row) =>
    row
      .map((cell, i) => (i === 0 || i === 6 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0)))
      .join("  ")
      .trimEnd(),
  );
}
