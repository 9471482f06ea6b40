import { ReconcileLoop } from "../../../shared/async/reconcile-loop.ts";
import type { Logger } from "../../../shared/log.ts";
import { parseAddress } from "../../protocols/ovsdb/mod.ts";
import { controlPlaces, openControl } from "../../protocols/switch-control/mod.ts";

/**
 * What a switch in user space has cached of its flows. When they change it puts the cache right, and Open vSwitch before
 * 2.17.8, 3.0.5, 3.1.3 and 3.2.0 puts the wrong entry right where two are for one packet ("dpif-netdev: Fix
 * dpif_netdev_flow_put"), as they are once a flow has come that matches more than others do: packets are then dropped, or
 * sent on, by a flow that has gone, for as long as they go on. So where others have been at the flows, all that is cached
 * goes; the next packets have it made anew.
 */
export class CachedFlows implements AsyncDisposable {
  readonly #loop: ReconcileLoop;
  #isOnceMore = false;

  /** @param database beside whose socket the switch has the one for commands; nothing is done for one without */
  constructor(database: string, logger: Logger) {
    const reconcile = async (): Promise<undefined> => {
      if (this.#isOnceMore) {
        this.#isOnceMore = false;
        this.#loop.trigger();
      }
      await forget(database);
    };
    this.#loop = new ReconcileLoop({
      what: "what the switch has cached of its flows",
      reconcile,
      logger,
      isDamped: true,
    });
  }

  /** At once, and a second later: the switch passes over what it is just about to put right, and lags behind by less. */
  forget(): void {
    this.#isOnceMore = true;
    this.#loop.trigger();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#loop[Symbol.asyncDispose]();
  }
}

async function forget(database: string): Promise<void> {
  const action = "have the switch forget what it has cached of its flows";
  const places = await controlPlaces(parseAddress(database));
  if (places.length === 0) return;
  using control = await openControl(places, action);
  await control.ask("revalidator/purge", [], action);
}
