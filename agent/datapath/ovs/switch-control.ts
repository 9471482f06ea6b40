import { ReconcileLoop } from "../../../shared/async/reconcile-loop.ts";
import type { Logger } from "../../../shared/log.ts";
import type { SwitchKind } from "../../config/overlay-options.ts";
import { parseAddress } from "../../protocols/ovsdb/mod.ts";
import { controlPlaces, openControl } from "../../protocols/switch-control/mod.ts";
import { nearlyFull } from "../linux/conntrack-usage.ts";

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

/** What ovs-vswitchd calls the data path of all its bridges in user space. */
const dataPath = "netdev@ovs-netdev";

/**
 * Whether the switch's own table of connections is nearly full: a switch in user space has one. That of the kernel's
 * module is the node's kernel's. A switch whose socket for commands is not beside the database's is not asked.
 * @throws {CniError} 7, 11
 */
export async function crowdedSwitch(kind: SwitchKind, database: string): Promise<readonly string[]> {
  if (kind !== "netdev") return [];
  const action = "look how full connection tracking is";
  const places = await controlPlaces(parseAddress(database));
  if (places.length === 0) return [];
  using control = await openControl(places, action);
  const ask = async (what: string): Promise<number> => Number(await control.ask(`dpctl/${what}`, [dataPath], action));
  return nearlyFull("the switch (dpctl/ct-set-maxconns)", await ask("ct-get-nconns"), await ask("ct-get-maxconns"));
}
