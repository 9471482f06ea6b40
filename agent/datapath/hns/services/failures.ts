import { Backoff } from "../../../../shared/async/backoff.ts";

const firstPauseMs = 1_000;
const longestPauseMs = 60_000;

interface Failure {
  /** What was tried. */
  readonly text: string;
  readonly reason: string;
  readonly backoff: Backoff;
  readonly notBeforeMs: number;
}

/** Single things that HNS has refused, each with a pause of its own before the next attempt. */
export class Failures {
  readonly #failures = new Map<string, Failure>();

  /** Why it failed last; absent: it has not. */
  reason(name: string): string | undefined {
    return this.#failures.get(name)?.reason;
  }

  /** Whether to leave it alone for now: what is tried is what failed, and its pause is not over. */
  isPaused(name: string, text: string): boolean {
    const failure = this.#failures.get(name);
    return failure !== undefined && failure.text === text && performance.now() < failure.notBeforeMs;
  }

  failed(name: string, text: string, reason: string): void {
    const known = this.#failures.get(name);
    const backoff =
      known?.text === text ? known.backoff : new Backoff({ firstMs: firstPauseMs, longestMs: longestPauseMs });
    this.#failures.set(name, { text, reason, backoff, notBeforeMs: performance.now() + backoff.next() });
  }

  succeeded(name: string): void {
    this.#failures.delete(name);
  }

  /** Forgets all but these. */
  keep(isWanted: (name: string) => boolean): void {
    for (const name of this.#failures.keys()) if (!isWanted(name)) this.#failures.delete(name);
  }
}
