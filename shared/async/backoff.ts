import { abortable, pause } from "./abortable.ts";

export interface BackoffTimes {
  /** Milliseconds; the pause doubles from the first to the longest. */
  readonly firstMs: number;
  readonly longestMs: number;
  /**
   * The part of each pause that is random, from 0 to 1 (absent: 0), so that many clients of one server do not reconnect
   * at the same moment after an outage.
   */
  readonly jitter?: number;
}

/** How long to pause before the next attempt. */
export class Backoff {
  readonly #times: BackoffTimes;
  #nextMs: number;

  constructor(times: BackoffTimes) {
    this.#times = times;
    this.#nextMs = times.firstMs;
  }

  /** Milliseconds for this pause; the next one is twice as long, up to the longest. */
  next(): number {
    const { longestMs, jitter = 0 } = this.#times;
    const ms = this.#nextMs;
    this.#nextMs = Math.min(2 * ms, longestMs);
    return ms * (1 - jitter * Math.random());
  }

  /** After a success: begins with the first pause again. */
  reset(): void {
    this.#nextMs = this.#times.firstMs;
  }
}

export interface RetryOptions extends BackoffTimes {
  /** Absent: only `failed` ends it. */
  readonly signal?: AbortSignal;
  /** Called after each failure; throws to give up. */
  failed(caught: unknown, pauseMs: number): void;
}

/**
 * Attempts the work until it succeeds.
 * @throws what `failed` throws, and what the signal was aborted with
 */
export async function retry<T>(attempt: () => Promise<T>, options: RetryOptions): Promise<T> {
  const { signal = new AbortController().signal, failed } = options;
  const backoff = new Backoff(options);
  for (;;) {
    signal.throwIfAborted();
    try {
      return await abortable(attempt(), signal);
    } catch (caught) {
      signal.throwIfAborted();
      const pauseMs = backoff.next();
      failed(caught, pauseMs);
      await pause(pauseMs, signal);
    }
  }
}
