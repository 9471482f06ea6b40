export interface BackOffTimes {
  /** Between two attempts: doubles from the first to the second, and each waits for a random part of it. */
  readonly retryFirstMs: number;
  readonly retryMostMs: number;
}

/** How long to wait before the next attempt: of many clients not all come again at once. */
export class BackOff {
  readonly #times: BackOffTimes;
  #mostMs: number;

  constructor(times: BackOffTimes) {
    this.#times = times;
    this.#mostMs = times.retryFirstMs;
  }

  /** @param atLeastMs what the server asked for */
  failed(atLeastMs = 0): number {
    this.#mostMs = Math.min(this.#mostMs * 2, this.#times.retryMostMs);
    return atLeastMs + this.#mostMs * Math.random();
  }

  /** Also what ends well is not asked for anew by all at once. */
  succeeded(): number {
    this.#mostMs = this.#times.retryFirstMs;
    return this.#mostMs * Math.random();
  }
}
