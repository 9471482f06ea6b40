import { withTimeout } from "../async/with-timeout.ts";
import { CniCode, CniError } from "../errors.ts";

/** Those of a node's pods when it boots, also where some are asked for twice: few have more than 250. */
const callsOfBoot = 500;

/** Counts the calls in flight, so that a stopping server can wait for them and refuse new ones. */
export class CallTracker {
  #inFlight = 0;
  #begun = 0;
  #closed = false;
  #whenDone: (() => void)[] = [];
  readonly #settled = Promise.withResolvers<void>();

  get inFlight(): number {
    return this.#inFlight;
  }

  /** How many have come so far. */
  get begun(): number {
    return this.#begun;
  }

  /** Resolves when so many calls have begun that those of a booting node are among them. */
  get settled(): Promise<void> {
    return this.#settled.promise;
  }

  /** @throws {CniError} code 11 once the tracker is closed */
  async track<T>(work: () => Promise<T>): Promise<T> {
    if (this.#closed) throw new CniError(CniCode.tryAgainLater, "Cannot serve the call: the server stops");
    this.#inFlight++;
    this.#begun++;
    if (this.#begun === callsOfBoot) this.#settled.resolve();
    try {
      return await work();
    } finally {
      this.#inFlight--;
      if (this.#inFlight === 0) for (const done of this.#whenDone.splice(0)) done();
    }
  }

  /** Refuses new calls. Resolves with `true` when the last one has ended, with `false` if the time is up before. */
  async close(withinMs: number): Promise<boolean> {
    this.#closed = true;
    if (this.#inFlight === 0) return true;
    const done = new Promise<boolean>((resolve) => {
      this.#whenDone.push(() => resolve(true));
    });
    return await withTimeout(done, withinMs, () => false);
  }
}
