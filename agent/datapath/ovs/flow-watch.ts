import type { Logger } from "../../../shared/log.ts";
import { pause } from "../../pause.ts";

export interface FlowWatchOptions {
  /** Compares the switch with what it should have, puts right what differs, and says what that was. */
  look(): Promise<readonly string[]>;
  readonly logger: Logger;
  readonly everyMs?: number;
}

/** For as long a pod may be without its flows before they are looked for. */
const defaultEveryMs = 60_000;
/** Looking at very many flows takes the switch's time and ours: no more of it than this part. */
const mostOfTime = 0.01;

/**
 * Looks at the switch again and again: nobody says so when somebody else deletes or changes a flow, and the pod behind
 * it would be without its network until the agent's next start.
 */
export class FlowWatch implements AsyncDisposable {
  readonly #options: FlowWatchOptions;
  readonly #ending = new AbortController();
  readonly #ended: Promise<void>;

  constructor(options: FlowWatchOptions) {
    this.#options = options;
    this.#ended = this.#run();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort();
    await this.#ended;
  }

  async #run(): Promise<void> {
    const { look, logger, everyMs = defaultEveryMs } = this.#options;
    const { signal } = this.#ending;
    let pauseMs = everyMs;
    for (;;) {
      await pause(pauseMs, signal);
      if (signal.aborted) return;
      const from = performance.now();
      try {
        const found = await look();
        if (found.length > 0)
          logger.warn("somebody else has changed the switch; it is as it should be again", { found });
      } catch (caught) {
        if (!signal.aborted) logger.warn("the switch could not be compared", { error: String(caught) });
      }
      pauseMs = Math.max(everyMs, (performance.now() - from) / mostOfTime);
    }
  }
}
