import type { Logger } from "../log.ts";
import { reasonOf } from "../reason.ts";
import { pause } from "./abortable.ts";
import { LogOnChange } from "./log-on-change.ts";

export interface ReconcileLoopOptions {
  /** What the loop brings to what it should be, for its messages. */
  readonly what: string;
  /** Answers what was refused of it: no failure for those who wait for the run, but tried again as one. */
  reconcile(): Promise<string | undefined>;
  readonly logger: Logger;
  /** Runs after this time without a trigger too; absent: only when triggered. */
  readonly everyMs?: number;
  /**
   * For triggers that anybody on the node can cause: runs at once, and then not before a rest, so that one trigger or a
   * thousand, also those that the run itself causes, cost no more than a small part of the processor.
   */
  readonly isDamped?: boolean;
}

/** Triggers within this time are one run. */
const gatherMs = 10;
/** A run that failed is tried again after this time, triggered or not. */
const retryMs = 1_000;
/** The shortest rest of a damped loop. */
const restMs = 1_000;
/**
 * The largest part of the processor's time that a damped loop takes. What a run waits for others does not count: on a
 * busy machine changes would be missed for twenty times as long as a run waits.
 */
const maxLoad = 0.05;
/** As long as a timer can be set: 24 days. */
const longestTimerMs = 2 ** 31 - 1;

/** Runs one job when it is triggered: never twice at a time, once more if triggered meanwhile, again if it failed. */
export class ReconcileLoop implements AsyncDisposable {
  readonly #options: ReconcileLoopOptions;
  readonly #stopping = new AbortController();
  readonly #ended: Promise<void>;
  /** Aborted by a trigger, which ends the wait for one. */
  #triggered = new AbortController();
  #next = Promise.withResolvers<void>();

  constructor(options: ReconcileLoopOptions) {
    this.#options = options;
    this.#ended = this.#run();
  }

  trigger(): void {
    this.#triggered.abort();
  }

  /** Triggers, and settles as the next run does. */
  run(): Promise<void> {
    this.trigger();
    return this.#next.promise;
  }

  /** Waits for the run that is under way; none begins afterwards. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort();
    this.trigger();
    await this.#ended;
    this.#next.promise.catch(() => undefined);
    this.#next.reject(new Error(`Cannot bring ${this.#options.what} to what it should be: the agent stops`));
  }

  async #run(): Promise<void> {
    const { what, logger, everyMs = longestTimerMs, isDamped = false } = this.#options;
    const { signal } = this.#stopping;
    const problem = new LogOnChange(logger);
    for (;;) {
      await pause(everyMs, this.#triggered.signal);
      if (!isDamped) await pause(gatherMs, signal);
      if (signal.aborted) return;
      // A trigger from now on is for the next run.
      this.#triggered = new AbortController();
      const from = processorMs();
      const error = await this.#reconcile();
      if (error === "") problem.clear();
      else if (!signal.aborted) problem.log(`${what} is not yet as it should be`, error);
      if (isDamped) await pause(Math.max(restMs, (processorMs() - from) / maxLoad), signal);
      else if (error !== "") await pause(retryMs, signal);
      if (error !== "") this.trigger();
    }
  }

  /** Answers what is wrong; nothing when all is well. */
  async #reconcile(): Promise<string> {
    const run = this.#next;
    this.#next = Promise.withResolvers<void>();
    // Mostly nobody waits for it.
    run.promise.catch(() => undefined);
    try {
      const refused = await this.#options.reconcile();
      run.resolve();
      return refused ?? "";
    } catch (caught) {
      run.reject(caught);
      return reasonOf(caught);
    }
  }
}

/** Of this process, in milliseconds. */
function processorMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}
