import type { SwitchKind } from "../../config/overlay-options.ts";
import { parseAddress } from "../../protocols/ovsdb/mod.ts";
import { controlPlaces, openControl } from "../../protocols/switch-control/mod.ts";
import { nearlyFull } from "../linux/conntrack-usage.ts";

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
