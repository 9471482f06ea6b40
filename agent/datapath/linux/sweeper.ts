import type { Logger } from "../../../shared/log.ts";
import { reasonOf } from "../../../shared/reason.ts";
import { deleteLinksOfGroup, Errno, isRefusal, type NetlinkSocket } from "../../protocols/netlink/mod.ts";

/**
 * Deletes the interfaces that were marked for it, all at once and behind the callers' backs.
 *
 * A deletion keeps its thread for about 15 ms, and 50 of them in one request keep it hardly longer. So it
 * runs in the runtime's pool, at most one at a time; what is marked meanwhile goes with the next.
 */
export class Sweeper {
  readonly #socket: NetlinkSocket;
  readonly #group: number;
  readonly #logger: Logger;
  #running: Promise<void> = Promise.resolve();
  #next: Promise<void> | undefined;

  /** `socket` is for this sweeper alone. */
  constructor(socket: NetlinkSocket, group: number, logger: Logger) {
    this.#socket = socket;
    this.#group = group;
    this.#logger = logger;
  }

  /** Resolves when all that was marked before this call is gone. Never rejects: what the kernel refuses is logged and tried with the next. */
  sweep(): Promise<void> {
    this.#next ??= this.#running.then(() => {
      this.#running = this.#next ?? Promise.resolve();
      this.#next = undefined;
      return this.#deleteGroup();
    });
    return this.#next;
  }

  async #deleteGroup(): Promise<void> {
    try {
      await this.#socket.post(deleteLinksOfGroup(this.#group));
    } catch (caught) {
      if (isRefusal(caught, Errno.ENODEV)) return;
      this.#logger.error("cannot delete detached interfaces", { error: reasonOf(caught) });
    }
  }
}
