import type { Logger } from "../../../shared/log.ts";

/** What is triggered within this time is done together. */
const gatherMs = 10;
/** What failed is tried again after this time, triggered or not. */
const againMs = 1_000;

/** Does one job whenever it is triggered: never twice at a time, once more where it was triggered meanwhile, again where it failed. */
export class Settler implements AsyncDisposable {
  readonly #job: () => Promise<void>;
  readonly #logger: Logger;
  readonly #stopped = Promise.withResolvers<void>();
  readonly #ended: Promise<void>;
  #triggered = Promise.withResolvers<void>();
  #next = Promise.withResolvers<void>();
  #isStopped = false;

  constructor(job: () => Promise<void>, logger: Logger) {
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
    this.#isStopped = true;
    this.#stopped.resolve();
    await this.#ended;
    this.#next.promise.catch(() => undefined);
    this.#next.reject(new Error("Cannot bring the switch to what it should be: the agent stops"));
  }

  async #run(): Promise<void> {
    let lastError = "";
    for (;;) {
      await Promise.race([this.#triggered.promise, this.#stopped.promise]);
      await this.#pause(gatherMs);
      if (this.#isStopped) return;
      this.#triggered = Promise.withResolvers<void>();
      const run = this.#next;
      this.#next = Promise.withResolvers<void>();
      // Mostly nobody waits for it.
      run.promise.catch(() => undefined);
      try {
        await this.#job();
        run.resolve();
        lastError = "";
      } catch (caught) {
        run.reject(caught);
        const error = caught instanceof Error ? caught.message : String(caught);
        // A switch that is away for long says the same every second.
        if (error !== lastError) this.#logger.warn("the switch is not yet as it should be", { error });
        lastError = error;
        this.#triggered.resolve();
        await this.#pause(againMs);
      }
    }
  }

  async #pause(ms: number): Promise<void> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const over = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, ms);
    });
    await Promise.race([over, this.#stopped.promise]);
    clearTimeout(timer);
  }
}
