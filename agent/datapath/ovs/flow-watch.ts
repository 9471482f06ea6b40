import { ReconcileLoop } from "../../../shared/async/reconcile-loop.ts";
import type { Logger } from "../../../shared/log.ts";

export interface FlowWatchOptions {
  /** Compares the switch with what it should have, puts right what differs, and says what that was. */
  look(): Promise<readonly string[]>;
  readonly logger: Logger;
  readonly everyMs?: number;
}

/** For as long a pod may be without its flows, where nobody says so, before they are looked for. */
const defaultEveryMs = 60_000;

/**
 * Looks at the switch when triggered, and again and again: not every switch says so when somebody else deletes or changes a
 * flow, and the pod behind it would be without its network until the agent's next start.
 */
export function watchFlows({ look, logger, everyMs = defaultEveryMs }: FlowWatchOptions): ReconcileLoop {
  const lookAndTell = async (): Promise<undefined> => {
    const found = await look();
    if (found.length > 0) logger.warn("somebody else has changed the switch; it is as it should be again", { found });
  };
  return new ReconcileLoop({ what: "the switch", reconcile: lookAndTell, logger, everyMs, isDamped: true });
}
