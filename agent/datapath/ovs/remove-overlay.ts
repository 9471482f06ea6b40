import { CniCode, CniError } from "../../../shared/errors.ts";
import { reasonOf } from "../../../shared/reason.ts";
import { removeBridge, removePorts, Transaction } from "../../protocols/ovsdb/mod.ts";
import type { HostChange } from "../host-change.ts";
import { roleOf } from "./port-identity.ts";
import { bridgeNamed, openDatabase, portsOf } from "./switch-database.ts";

/** A database that a person is to start first is not waited for long. */
const patienceMs = 5_000;
const step = "ovs bridge";

/** Takes the overlay's bridge away, with all ports; where somebody else has ports on it, only ours. */
export async function removeOverlay(database: string, bridge: string): Promise<readonly HostChange[]> {
  const what = `bridge "${bridge}" of Open vSwitch`;
  try {
    using db = openDatabase(database);
    await db.ready(patienceMs);
    const standing = bridgeNamed(db.view, bridge);
    const ports = portsOf(db.view, bridge).filter(({ name }) => name !== bridge);
    const ours = ports.filter(({ external_ids }) => roleOf(external_ids) !== undefined);
    if (standing === undefined || ours.length === 0) return [{ step, what, did: "was gone" }];
    const others = ports.filter((port) => !ours.includes(port));
    const transaction = new Transaction(`remove the ${what}`);
    if (others.length === 0) removeBridge(transaction, standing._uuid);
    else
      removePorts(
        transaction,
        bridge,
        ours.map(({ _uuid }) => _uuid),
      );
    await db.transact(transaction);
    if (others.length === 0) return [{ step, what, did: "undone" }];
    const names = others.map(({ name }) => `"${name}"`).join(", ");
    throw new CniError(CniCode.interfaceFailure, `Cannot remove the ${what}: it has ports ${names}, wanted ours alone`);
  } catch (caught) {
    return [{ step, what, did: "failed", problem: reasonOf(caught) }];
  }
}
