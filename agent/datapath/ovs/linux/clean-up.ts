import type { Logger } from "../../../../shared/log.ts";
import { trustAuthorities } from "../../../certificates/trusted-authorities.ts";
import { usualTrustDirectory } from "../../../config/certificates-config.ts";
import { attempt, type HostChange } from "../../host-change.ts";
import { findLink } from "../../linux/host-links.ts";
import { removeNodeRoutes } from "../../linux/node-routes.ts";
import { packetTable, removePacketRules } from "../../linux/packet-rules.ts";
import { PodPairs } from "../../linux/pod-pairs.ts";
import { removeOverlay } from "../database/node-bridge.ts";
import { openDatabase, uplinkOf } from "../database/switch-database.ts";
import { removeClearGuards } from "./encryption/clear-guard.ts";
import { removeDevices } from "./encryption/wireguard-link.ts";
import { removeKernelIsolation } from "./kernel-isolation.ts";
import { restoreNodeAddresses } from "./linux-host.ts";
import { moveAddresses } from "./uplink.ts";
import { UplinkNotes } from "./uplink-record.ts";

export interface CleanUpOptions {
  readonly network: string;
  readonly dataDir: string;
  /** Name of the node's own interface on the bridge, where the configuration has one. */
  readonly uplink: string | undefined;
  readonly database: string;
  readonly bridge: string;
  /** Name of the gateway port. */
  readonly gateway: string;
  /** Name of the device that encrypts. */
  readonly encrypting: string;
  readonly logger: Logger;
}

/** Short, because a person has to start a missing database first. */
const patienceMs = 5_000;

/**
 * Undoes what agents with this data path have changed on the node: pods' interfaces, the node's addresses on the
 * bridge, the bridge, routes and rules. Failures are reported, and the rest is still done.
 */
export async function cleanUpOvs(leavings: CleanUpOptions): Promise<readonly HostChange[]> {
  const { network, database, bridge, gateway, encrypting, logger } = leavings;
  await using pairs = new PodPairs(logger);
  const { socket } = pairs.tools;
  const back = await attempt("uplink", `addresses on "${bridge}"`, () => giveBack(leavings, pairs));
  return [
    await attempt("pods", `interfaces of network "${network}"`, async () => {
      const owners = pairs.attachments((name) => name === network).map(({ alias }) => alias.owner);
      for (const owner of owners) pairs.takeOutOfService(owner);
      await pairs.tools.sweeper.sweep();
      return owners.length > 0;
    }),
    back,
    await attempt("routes", "routes to other nodes' pods", async () => removeNodeRoutes(socket)),
    // If moving failed the bridge stays, because deleting it would delete the node's addresses on it.
    ...(back.did === "failed" ? [] : await removeOverlay(database, bridge)),
    await attempt("packet rules", `table "${packetTable({ bridge: gateway })}"`, async () => {
      await removePacketRules([{ bridge: gateway }]);
      using filters = pairs.tools.kernel.openPacketFilterSocket();
      removeKernelIsolation(filters, socket, gateway);
      return true;
    }),
    await attempt("encryption", `device "${encrypting}"`, async () => {
      const hadDevice = removeDevices(socket);
      return (await removeClearGuards()) || hadDevice;
    }),
    await attempt("trust", `authorities in "${usualTrustDirectory}"`, async () =>
      trustAuthorities(usualTrustDirectory, ""),
    ),
  ];
}

/** Moves an uplink's addresses and routes back to it, also those that were lost with an earlier bridge. */
async function giveBack(leavings: CleanUpOptions, { tools: { socket } }: PodPairs): Promise<boolean> {
  const { database, bridge, dataDir, uplink: configured, logger } = leavings;
  const isFound = configured !== undefined && restoreNodeAddresses(dataDir, configured, bridge, logger);
  using db = openDatabase(database);
  await db.ready(patienceMs);
  const uplink = uplinkOf(db.view, bridge);
  const [from, to] = [findLink(socket, { name: bridge }), findLink(socket, { name: uplink ?? "" })];
  if (uplink === undefined || from === undefined || to === undefined) return isFound;
  moveAddresses(socket, from, to);
  new UplinkNotes(dataDir).forget();
  return true;
}
