import { Backoff } from "../../shared/async/backoff.ts";
import { reasonOf } from "../../shared/reason.ts";
import type { AgentContext } from "./agent-context.ts";

/** Before the second attempt. */
const firstPauseMs = 1_000;

/**
 * Sets the data path up again when it has a problem: a bridge that was taken down or deleted would keep STATUS failing,
 * and without ADDs nothing else would repair it. A failed repair is tried again after growing pauses.
 */
export class DataPathRepair {
  readonly #context: Pick<AgentContext, "dataPath" | "logger">;
  readonly #backoff: Backoff;
  /** Attempts since the data path last had no problem. */
  #times = 0;
  /** On the monotonic clock: a stepped clock must not stop it. */
  #notBeforeMs = 0;
  #running: Promise<void> | undefined;
  #next: ReturnType<typeof setTimeout> | undefined;
  #stopped = false;

  constructor(
    context: Pick<AgentContext, "dataPath" | "logger">,
    { intervalMs, longestMs }: { readonly intervalMs: number; readonly longestMs: number },
  ) {
    this.#context = context;
    this.#backoff = new Backoff({ firstMs: Math.min(intervalMs, firstPauseMs), longestMs });
  }

  /** Checks, and repairs if it is time; concurrent callers share one run. Never throws. */
  run(): Promise<void> {
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#running;
    clearTimeout(this.#next);
  }

  async #run(): Promise<void> {
    const { dataPath, logger } = this.#context;
    try {
      const problems = await dataPath.problems();
      if (problems.length === 0) {
        this.#beginAnew();
        return;
      }
      if (performance.now() < this.#notBeforeMs) return;
      this.#retryLater();
      logger.warn("repairing the data path", { problems: problems.map(({ message }) => message), times: this.#times });
      await dataPath.start();
      // Problems that are new since then do not count as failed repairs.
      const left = new Set((await dataPath.problems()).map(({ message }) => message));
      if (problems.some(({ message }) => left.has(message))) return;
      this.#beginAnew();
      if (left.size === 0) clearTimeout(this.#next);
    } catch (caught) {
      logger.error("the data path could not be repaired", { error: reasonOf(caught) });
    }
  }

  #retryLater(): void {
    const pauseMs = this.#backoff.next();
    this.#times++;
    this.#notBeforeMs = performance.now() + pauseMs;
    clearTimeout(this.#next);
    this.#next = setTimeout(() => {
      if (!this.#stopped) void this.run();
    }, pauseMs);
  }

  #beginAnew(): void {
    this.#backoff.reset();
    this.#times = 0;
    this.#notBeforeMs = 0;
  }
}
