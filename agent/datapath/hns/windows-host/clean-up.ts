import { contains, parseCidr } from "../../../../shared/net/ip.ts";
import { reasonOf } from "../../../../shared/reason.ts";
import type { HostChange } from "../../host-change.ts";
import {
  actAndReadBack,
  addressMoveLooks,
  describeEntry,
  hostLookMs,
  isKnown,
  type Look,
  lookAt,
  undo,
} from "./engine.ts";
import type { HostRunner } from "./powershell.ts";
import { type Entry, HostRecord, type SavedAdapter, type Thing } from "./record.ts";
import type { HostReport } from "./settings.ts";
import {
  adapterWith,
  address,
  addressOf,
  describeSaved,
  holds,
  judgeOn,
  makeOn,
  savedThings,
} from "./steps/address.ts";
import { hostError } from "./steps/step.ts";
import type { TableName, Tables } from "./tables.ts";

/** Deletes the HNS network of this name with its endpoints, if it is there, and says what it did. */
export type RemoveNetwork = (name: string) => Promise<readonly HostChange[]>;

/**
 * Undoes everything that is on record in `dataDir`, for each network newest first: the steps' changes, then the HNS
 * network, if it is ours; last it ensures that the node's adapter has its address back. Failures are reported and stay
 * on record, and the rest is still done; a second run continues.
 */
export async function cleanUpHost(dataDir: string, run: HostRunner, removeNetwork: RemoveNetwork): Promise<HostReport> {
  const changes: HostChange[] = [];
  for (const record of HostRecord.all(dataDir)) {
    await undo(run, record.entries, (entries, undone) => {
      if (undone.did !== "failed") record.remove(entries);
      const problem = undone.did === "failed" ? { problem: reasonOf(undone.caught) } : {};
      for (const entry of entries)
        changes.push({ step: entry.step, what: describeEntry(entry), did: undone.did, ...problem });
    });
    for (const entry of record.entries.filter((one) => !isKnown(one)))
      changes.push({ step: entry.step, what: describeEntry(entry), did: "failed", problem: unknown(record, entry) });
    if (record.adapter !== undefined) changes.push(...(await takeNetworkAway(record, run, removeNetwork)));
  }
  return { changes };
}

const unknown = ({ path }: HostRecord, { step }: Entry): string =>
  `Cannot undo step "${step}" of "${path}": this version has no such step, wanted the version that made it`;

async function takeNetworkAway(
  record: HostRecord,
  run: HostRunner,
  removeNetwork: RemoveNetwork,
): Promise<readonly HostChange[]> {
  const changes: HostChange[] = [];
  let step = "hns network";
  let what = `HNS network "${record.network}"`;
  try {
    changes.push(...(await removeNetwork(record.network)));
    if (changes.some(({ did }) => did === "failed")) return changes;
    step = "hand back";
    what = `${record.adapter?.address} on "${record.adapter?.name}"`;
    changes.push(...(await handBack(record, run)));
  } catch (caught) {
    changes.push({ step, what, did: "failed", problem: reasonOf(caught) });
  }
  return changes;
}

/**
 * To be called after the HNS network was deleted: ensures that the adapter has its settings back. Windows usually
 * restores them; if it does not, the node would be off the network. The agent uses it when the creation of a network
 * has failed.
 * @param network only this one; by default all on record
 * @throws {CniError} 102 where the card is gone, or does not take its address
 */
export async function handBackAddress(dataDir: string, run: HostRunner, network?: string): Promise<HostReport> {
  const records = network === undefined ? HostRecord.all(dataDir) : [HostRecord.open(dataDir, network)];
  const changes: HostChange[] = [];
  for (const record of records) changes.push(...(await handBack(record, run)));
  return { changes };
}

const action = "give the node's card its address back";
const tables: readonly TableName[] = ["adapters", "addresses", "interfaces", "dnsServers", "routes"];

async function handBack(record: HostRecord, run: HostRunner): Promise<readonly HostChange[]> {
  const { adapter: saved } = record;
  if (saved === undefined) return [];
  const look = lookAt(run, action, tables);
  const isBack = (seen: Tables): boolean => holds(seen, adapterWith(seen, saved.mac, false)?.index, addressOf(saved));
  let seen = await look();
  for (let looks = 1; !isBack(seen) && looks < addressMoveLooks; looks++) {
    await run.pause(hostLookMs);
    seen = await look();
  }
  const what = `${saved.address} on "${saved.name}"`;
  if (isBack(seen)) {
    record.forgetAdapter(address.name);
    return [{ step: "hand back", what, did: "was there" }];
  }
  await give(saved, run, seen, look);
  record.forgetAdapter(address.name);
  return [{ step: "hand back", what, did: "made" }];
}

async function give(saved: SavedAdapter, run: HostRunner, seen: Tables, look: Look): Promise<void> {
  const card = adapterWith(seen, saved.mac, false);
  if (card === undefined) throw hostError(action, `no card has ${saved.mac}`, `"${saved.name}"`);
  const things = saved.dhcp ? [] : savedThings(saved);
  const open = (now: Tables): readonly Thing[] =>
    things.filter((thing) => judgeOn(card.index, thing, now).t === "missing");
  const dhcp = { cmdlet: "Set-NetIPInterface", args: { InterfaceIndex: card.index, Dhcp: "Enabled" } };
  const statements = saved.dhcp ? [dhcp] : open(seen).flatMap((thing) => makeOn(card.index, thing));
  await actAndReadBack(run, action, statements, look, (now) => {
    // A DHCP server may give another address than before.
    if (saved.dhcp) return hasAddress(now, card.index, saved) ? "" : "the card has no address";
    return open(now)
      .map((thing) => `there is no ${describeSaved(thing)}`)
      .join(", ");
  });
}

/** Of the same family, and not one that an adapter gives itself when nobody else does. */
const hasAddress = (now: Tables, index: number, saved: SavedAdapter): boolean =>
  now
    .get("addresses")
    .filter((entry) => entry.index === index && entry.ip.family === addressOf(saved).ip.family)
    .some(({ ip }) => !selfGiven.some((block) => contains(block, ip)));

const selfGiven = ["169.254.0.0/16", "fe80::/10"].map((text) => parseCidr(text)).filter((block) => block !== undefined);
