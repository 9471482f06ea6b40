import type { Logger } from "../log.ts";
import { reasonOf } from "../reason.ts";
import { pause } from "./pause.ts";

export interface LookSoonOptions {
  /** Compares what there is with what there should be, and puts right what differs. */
  look(): Promise<void>;
  /** Continues "cannot look at …" in the log. */
  readonly what: string;
  readonly logger: Logger;
  /** Looks after this time without a hint too; absent: somebody else does. */
  readonly everyMs?: number;
}

/** After a look the next one waits for as long, whatever is said meanwhile. */
const restMs = 1_000;
/**
 * To look at very much takes time of the processor: no more of it than this part. What a look waits for others does not
 * count: on a machine that has much to do, what is taken away would be missed for as long as twenty looks wait.
 */
const mostOfTime = 0.05;

/** Of this process, in milliseconds. */
function processorMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

/**
 * Looks at once when something may have changed, and then not before a rest: one hint or a thousand, true or false, and
 * what the look itself changes, cost no more than that.
 */
export class LookSoon implements AsyncDisposable {
  readonly #options: LookSoonOptions;
  readonly #ending = new AbortController();
  readonly #ended: Promise<void>;
  /** Aborted by a hint, so that nobody waits any longer. */
  #hinted = new AbortController();

  constructor(options: LookSoonOptions) {
    this.#options = options;
    this.#ended = this.#run();
  }

  /** Something may have changed. */
  hint(): void {
    this.#hinted.abort();
  }

  /** Waits for a look that is under way; none begins any more. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort();
    this.hint();
    await this.#ended;
  }

  async #run(): Promise<void> {
    const { look, what, logger, everyMs = longestTimerMs } = this.#options;
    const { signal } = this.#ending;
    for (;;) {
      await pause(everyMs, this.#hinted.signal);
      if (signal.aborted) return;
      // What is said from now on is for the next look.
      this.#hinted = new AbortController();
      const from = processorMs();
      try {
        await look();
      } catch (caught) {
        if (!signal.aborted) logger.warn(`cannot look at ${what}`, { error: reasonOf(caught) });
      }
      await pause(Math.max(restMs, (processorMs() - from) / mostOfTime), signal);
      if (signal.aborted) return;
    }
  }
}

/** As long as a timer can be set: 24 days. */
const longestTimerMs = 2 ** 31 - 1;
