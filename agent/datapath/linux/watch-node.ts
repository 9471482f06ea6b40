import { ReconcileLoop } from "../../../shared/async/reconcile-loop.ts";
import type { Logger } from "../../../shared/log.ts";
import { reasonOf } from "../../../shared/reason.ts";
import { type Change, type Kernel, NetlinkError, readChange } from "../../protocols/netlink/mod.ts";
import { linkGroup } from "./host-links.ts";
import { routeProtocol } from "./node-routes.ts";

interface WatchNodeOptions extends Omit<KernelChangesOptions, "onChange"> {
  look(): Promise<void>;
  readonly logger: Logger;
}

/** The interval of a check without a notice; a notice of the kernel is followed by a check within a second. */
const everyMs = 60_000;

/** Checks the node's own network when the kernel reports a change, and every minute. */
export function watchNode(options: WatchNodeOptions): AsyncDisposable {
  const { look, logger } = options;
  const reconcile = async (): Promise<undefined> => void (await look());
  const stack = new AsyncDisposableStack();
  const loop = stack.use(new ReconcileLoop({ what: "the node's network", reconcile, logger, everyMs, isDamped: true }));
  try {
    stack.use(new KernelChanges({ ...options, onChange: () => loop.trigger() }));
  } catch (caught) {
    if (!(caught instanceof NetlinkError)) throw caught;
    logger.warn("changes on the node are seen within a minute only", { error: caught.message });
  }
  return stack;
}

interface KernelChangesOptions {
  readonly kernel: Kernel;
  /** Tables of packet rules that are ours. */
  readonly tables: readonly string[];
  /** Whether an interface is a pod's port on a bridge of ours. */
  isPort(index: number): boolean;
  /** Called when somebody may have deleted something of ours. */
  onChange(): void;
  readonly logger: Logger;
}

/** The kernel queues its messages until then; reading them costs some microseconds. */
const pollMs = 250;

/**
 * Follows the kernel's messages about this node's own interfaces, addresses, routes, forwarding and packet rules, and
 * reports changes that may be deletions by others. Pods' namespaces are not followed.
 *
 * It polls the sockets instead of being woken by each message, since a pod causes some twenty. An overflow of the
 * kernel's queue counts as a change.
 */
class KernelChanges implements Disposable {
  readonly #options: KernelChangesOptions;
  readonly #resources = new DisposableStack();
  /** Interfaces that are down, because one that comes up again has lost its routes. */
  readonly #down = new Set<number>();
  #saidWhy = false;

  /** @throws {NetlinkError} if the kernel refuses the subscription */
  constructor(options: KernelChangesOptions) {
    const { kernel } = options;
    this.#options = options;
    using opened = new DisposableStack();
    const sockets = [opened.use(kernel.openLinkChanges()), opened.use(kernel.openPacketFilterChanges())];
    this.#resources.use(opened.move());
    const timer = setInterval(() => {
      for (const socket of sockets) this.#read(socket);
    }, pollMs);
    this.#resources.defer(() => clearInterval(timer));
  }

  [Symbol.dispose](): void {
    this.#resources.dispose();
  }

  #read(socket: ReturnType<Kernel["openLinkChanges"]>): void {
    const { kernel, onChange, logger } = this.#options;
    let matters = false;
    try {
      const missed = socket.drain((message) => {
        if (kernel.isOwn(message)) return;
        const change = readChange(message);
        // All messages are read, to know which interfaces are down.
        if (change !== undefined && this.#matters(change)) matters = true;
      });
      if (missed || matters) onChange();
    } catch (caught) {
      // The periodic check still finds changes.
      if (!this.#saidWhy) logger.error("changes on the node are not heard at once", { error: reasonOf(caught) });
      this.#saidWhy = true;
    }
  }

  #matters(change: Change): boolean {
    const { tables, isPort } = this.#options;
    switch (change.t) {
      case "packet-rules":
        return tables.includes(change.table);
      case "route-gone":
        return change.protocol === routeProtocol;
      case "address-gone":
      case "forwarding-off":
        return true;
      case "link": {
        const { index, is } = change;
        if (is === "left") return isPort(index);
        if (is === "up") return this.#down.delete(index);
        // An interface of ours that comes or goes.
        const group = change.group();
        if (group === linkGroup.beingMade || group === linkGroup.toDelete) return false;
        const wasDown = is === "gone" ? this.#down.delete(index) : this.#down.has(index);
        if (is === "down") this.#down.add(index);
        return is === "gone" || !wasDown;
      }
    }
  }
}
