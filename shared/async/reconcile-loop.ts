import type { Logger } from "../log.ts";
import { reasonOf } from "../reason.ts";
import { pause } from "./abortable.ts";
import { Backoff, type BackoffTimes } from "./backoff.ts";
import { LogOnChange } from "./log-on-change.ts";

export interface ReconcileLoopOptions {
  /** What the loop reconciles, for messages. */
  readonly what: string;
  /**
   * Answers what could not be done: for those who wait the run has succeeded, but it is tried again like a failed one.
   */
  reconcile(): Promise<string | undefined>;
  readonly logger: Logger;
  /** Runs after this time without a trigger too; absent: only when triggered. */
  readonly everyMs?: number;
  /**
   * For triggers that anybody on the node can cause, and that a run itself may cause: after a run the loop rests, so
   * that any number of triggers costs only a small part of the processor.
   */
  readonly isDamped?: boolean;
  /** Triggers within this time are one run; absent: 10 ms. */
  readonly gatherMs?: number;
  /**
   * For runs that do most of it while a part stays refused: the pauses after failures, which a trigger ends. Absent: a
   * second, which it does not.
   */
  readonly retry?: BackoffTimes;
}

const usualGatherMs = 10;
/** A run that failed is tried again after this time, triggered or not. */
const retryMs = 1_000;
/** The shortest rest of a damped loop. */
const restMs = 1_000;
/**
 * The largest share of the processor's time that a damped loop takes. The time in which a run waits for others does not
 * count: on a busy machine the rests would become twenty times as long as those waits.
 */
const maxLoad = 0.05;
/** The longest time of a timer: 24 days. */
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
    const { what, logger, everyMs = longestTimerMs, isDamped = false, gatherMs = usualGatherMs, retry } = this.#options;
    const { signal } = this.#stopping;
    const backoff = retry === undefined ? undefined : new Backoff(retry);
    const problem = new LogOnChange(logger);
    for (;;) {
      await pause(everyMs, this.#triggered.signal);
      if (!isDamped) await pause(gatherMs, signal);
      if (signal.aborted) return;
      // A trigger from now on is for the next run.
      this.#triggered = new AbortController();
      const from = processorMs();
      const error = await this.#reconcile();
      if (error === "") {
        problem.clear();
        backoff?.reset();
      } else if (!signal.aborted) problem.log(`${what} is not yet as it should be`, error);
      if (isDamped) await pause(Math.max(restMs, (processorMs() - from) / maxLoad), signal);
      else if (error !== "" && backoff !== undefined) await pause(backoff.next(), this.#triggered.signal);
      else if (error !== "") await pause(retryMs, signal);
      if (error !== "") this.trigger();
    }
  }

  /** Answers what is wrong; nothing when all is well. */
  async #reconcile(): Promise<string> {
    const run = this.#next;
    this.#next = Promise.withResolvers<void>();
    // Usually nobody waits for it, and an unhandled rejection would end the process.
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
