import type { Logger } from "../log.ts";
import { reasonOf } from "../reason.ts";
import { pause } from "./pause.ts";

/** What is triggered within this time is done together. */
const gatherMs = 10;
/** What failed is tried again after this time, triggered or not. */
const againMs = 1_000;

/** Does one job whenever it is triggered: never twice at a time, once more where it was triggered meanwhile, again where it failed. */
export class Settler implements AsyncDisposable {
  readonly #what: string;
  readonly #job: () => Promise<string | undefined>;
  readonly #logger: Logger;
  readonly #stopping = new AbortController();
  readonly #ended: Promise<void>;
  #triggered = Promise.withResolvers<void>();
  #next = Promise.withResolvers<void>();

  /**
   * @param what is brought to what it should be, in its messages
   * @param job answers what is refused of it, which is no failure of the job, and tried again as one
   */
  constructor(what: string, job: () => Promise<string | undefined>, logger: Logger) {
    this.#what = what;
    this.#job = job;
    this.#logger = logger;
    this.#ended = this.#run();
  }

  trigger(): void {
    this.#triggered.resolve();
  }

  /** Triggers, and answers as the next run does. */
  run(): Promise<void> {
    this.trigger();
    return this.#next.promise;
  }

  /** Waits for what runs; nothing is begun any more. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort();
    this.trigger();
    await this.#ended;
    this.#next.promise.catch(() => undefined);
    this.#next.reject(new Error(`Cannot bring ${this.#what} to what it should be: the agent stops`));
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    let lastError = "";
    for (;;) {
      await this.#triggered.promise;
      await pause(gatherMs, signal);
      if (signal.aborted) return;
      this.#triggered = Promise.withResolvers<void>();
      const run = this.#next;
      this.#next = Promise.withResolvers<void>();
      // Mostly nobody waits for it.
      run.promise.catch(() => undefined);
      const error = await this.#job().then(
        (refused = "") => {
          run.resolve();
          return refused;
        },
        (caught: unknown) => {
          run.reject(caught);
          return reasonOf(caught);
        },
      );
      // A switch that is away for long says the same every second.
      if (error !== "" && error !== lastError) this.#logger.warn(`${this.#what} is not yet as it should be`, { error });
      lastError = error;
      if (error === "") continue;
      this.#triggered.resolve();
      await pause(againMs, signal);
    }
  }
}
