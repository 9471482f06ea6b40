import { ReconcileLoop } from "../../../shared/async/reconcile-loop.ts";
import type { Logger } from "../../../shared/log.ts";
import { formatIp, parseIp } from "../../../shared/net/ip.ts";
import type { SwitchKind } from "../../config/ovs-config.ts";
import { parseAddress } from "../../protocols/ovsdb/mod.ts";
import { controlPlaces, openControl } from "../../protocols/switch-control/mod.ts";
import { nearlyFull } from "../linux/conntrack-usage.ts";

/** The name of the data path of all user space bridges in ovs-vswitchd. */
const dataPath = "netdev@ovs-netdev";

/**
 * The flow cache of a switch in user space. When flows change the switch corrects its cache, but Open vSwitch before
 * 2.17.8, 3.0.5, 3.1.3 and 3.2.0 corrects the wrong one of two entries for the same packet ("dpif-netdev: Fix
 * dpif_netdev_flow_put"), which occur after a more general flow was added. Packets are then handled by a deleted flow
 * for as long as they continue. So after changes by others the whole cache is purged; the next packets fill it again.
 */
export class FlowCache implements AsyncDisposable {
  readonly #loop: ReconcileLoop;
  readonly #database: string;
  #isOnceMore = false;

  /** @param database beside whose socket the switch has the one for commands; nothing is done for one without */
  constructor(database: string, logger: Logger) {
    this.#database = database;
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

  /**
   * Purges at once, and again a second later: the correction that ran meanwhile may have changed an entry made since, and
   * `dpctl/del-flows` leaves the switch with records of entries that are gone, whose packets are not cached again before.
   */
  purge(): void {
    this.#isOnceMore = true;
    this.#loop.trigger();
  }

  /**
   * The same, and answers once it is purged: from then on packets go by the flows that there are now, which would
   * otherwise take the switch up to half a second.
   */
  async purgeNow(): Promise<void> {
    this.purge();
    // Where it fails, the loop says so and tries again.
    await forget(this.#database).catch(() => undefined);
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
  // The purge skips what the switch is just correcting: on a busy node packets went by an old entry after it.
  await control.ask("dpctl/del-flows", [dataPath], action);
}

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

/**
 * The addresses whose MAC a switch in user space knows for its tunnels, as `formatIp` writes them; none where its socket
 * for commands is not beside the database's. @throws {CniError} 7, 11
 */
export async function knownNeighbours(database: string): Promise<ReadonlySet<string>> {
  const action = "look whom the switch knows beyond its tunnels";
  const places = await controlPlaces(parseAddress(database));
  if (places.length === 0) return new Set();
  using control = await openControl(places, action);
  const lines = (await control.ask("tnl/neigh/show", [], action)).split("\n");
  // Under a head of two lines: address, MAC, bridge, and "STALE" behind what is no longer used.
  const current = lines.filter((line) => !line.endsWith(" STALE"));
  const addresses = current.map((line) => parseIp(line.split(" ", 1)[0] ?? ""));
  return new Set(addresses.flatMap((address) => (address === undefined ? [] : [formatIp(address)])));
}
