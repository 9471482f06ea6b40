import { ReconcileLoop } from "../../../shared/async/reconcile-loop.ts";
import type { Logger } from "../../../shared/log.ts";
import { NetlinkError } from "../../protocols/netlink/mod.ts";
import { KernelChanges, type KernelChangesOptions } from "./kernel-changes.ts";

export interface WatchNodeOptions extends Omit<KernelChangesOptions, "hint"> {
  look(): Promise<void>;
  readonly logger: Logger;
}

/** For as long something may be amiss that nobody has said: what is said is looked at within a second. */
const everyMs = 60_000;

/** Looks at the node's own network when the kernel says that something has changed, and every minute. */
export function watchNode(options: WatchNodeOptions): AsyncDisposable {
  const { look, logger } = options;
  const reconcile = async (): Promise<undefined> => void (await look());
  const stack = new AsyncDisposableStack();
  const loop = stack.use(new ReconcileLoop({ what: "the node's network", reconcile, logger, everyMs, isDamped: true }));
  try {
    stack.use(new KernelChanges({ ...options, hint: () => loop.trigger() }));
  } catch (caught) {
    if (!(caught instanceof NetlinkError)) throw caught;
    logger.warn("changes on the node are seen within a minute only", { error: caught.message });
  }
  return stack;
}
