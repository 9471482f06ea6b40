import { LogOnChange } from "../../../../../shared/async/log-on-change.ts";
import type { Logger } from "../../../../../shared/log.ts";

/** Nodes that are told of at once; a cluster may have thousands. */
const maxTold = 10;

/** Tells what has been so at two looks, as a new node needs a moment. */
export class LastingTroubles {
  readonly #silence: LogOnChange;
  readonly #tell: (trouble: string) => void;
  /** What was wrong at the last look. */
  #seen: ReadonlySet<string> = new Set();

  /** @param tell called with what keeps other nodes' pods from being reached, again and again while it lasts */
  constructor(logger: Logger, tell: (trouble: string) => void) {
    this.#silence = new LogOnChange(logger);
    this.#tell = tell;
  }

  /** @param troubles sentences that stay the same for as long as it is so */
  look(troubles: readonly string[]): void {
    const lasting = troubles.filter((one) => this.#seen.has(one));
    this.#seen = new Set(troubles);
    if (lasting.length === 0) this.#silence.clear();
    else this.#silence.log("other nodes' pods are not reached", lasting.slice(0, maxTold).join("; "));
    for (const one of lasting.slice(0, maxTold)) this.#tell(one);
  }
}
