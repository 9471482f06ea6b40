import { formatCidr, formatIp, type Ip, parseCidr, parseIp, sameIp } from "../../shared/net/ip.ts";
import { defineCommand } from "../../shared/terminal/command.ts";
import { exitStatus } from "../../shared/terminal/exit-status.ts";
import { formatJson, printable } from "../../shared/terminal/printable.ts";
import { formatAge, formatTable } from "../../shared/terminal/table.ts";
import { readBootId } from "../allocator-env.ts";
import { intervalAt } from "../config/intervals.ts";
import type { Lease } from "../lease.ts";
import type { StoreSnapshot } from "../store/store-snapshot.ts";
import { inStateSinceMs, leaseTable, leaseView, podText, timeText } from "./lease-view.ts";
import { poolsOfStore, poolText } from "./pools.ts";
import {
  confOption,
  dataDirOption,
  jsonOption,
  namesOf,
  networkOption,
  openSnapshot,
  scopeOf,
  unknownNetwork,
} from "./scope.ts";

const action = "show leases";

export const show = defineCommand({
  action,
  about: `Shows all about the leases of one address, one pod or one sandbox. An address may be written in any way, a
sandbox by the beginning of its id, a pod by its name alone.`,
  operands: [
    { name: "WHAT", of: namesOf("holders"), help: "an address, NAMESPACE/NAME of a pod, or the id of a sandbox" },
  ],
  options: { conf: confOption, network: networkOption, json: jsonOption, "data-dir": dataDirOption },
  exits: { 3: "there is no such lease or network, or no database", 4: "more than one fits; they are listed" },
  run: async ({ options, operands: [what = ""] }, io) => {
    const scope = await scopeOf(options, io);
    const unknown = await unknownNetwork(scope, action, io);
    if (unknown !== undefined) {
      if (options.json) io.stdout(formatJson([]));
      return unknown;
    }
    using snapshot = await openSnapshot(scope.dataDir, action, io);
    if (snapshot === undefined) return exitStatus.notThere;
    const { network } = scope;
    const leases = matching(snapshot, what, network);
    const things = new Set(leases.map(thingOf(what)));
    if (options.json) io.stdout(formatJson(leases.map(leaseView)));
    if (leases.length === 0) {
      io.stderr(`${notThere(snapshot, what, network)}\n`);
      return exitStatus.notThere;
    }
    if (things.size > 1) {
      if (!options.json) io.stdout(leaseTable(leases, Date.now()));
      io.stderr(`${printable(`"${what}" fits ${things.size} different things`)}\n`);
      return exitStatus.several;
    }
    const bootId = readBootId();
    if (!options.json) io.stdout(leases.map((lease) => details(lease, bootId, Date.now())).join("\n"));
    return exitStatus.done;
  },
});

/** The leases that a typed word means; of the possible readings the most exact one that fits anything counts. */
export function matching(snapshot: StoreSnapshot, what: string, network: string | undefined): readonly Lease[] {
  const ip = addressIn(what);
  const ways: readonly ((lease: Lease) => boolean)[] =
    ip !== undefined
      ? [(lease) => sameIp(lease.address.ip, ip)]
      : what.includes("/")
        ? [(lease) => podText(lease) === what]
        : [
            ({ owner }) => owner.sandboxId === what,
            ({ owner }) => owner.sandboxId.startsWith(what),
            ({ pod }) => pod?.name === what,
          ];
  const found = ways.map((): Lease[] => []);
  for (const lease of snapshot.kept(Date.now(), network)) {
    const way = ways.findIndex((fits) => fits(lease));
    if (way >= 0) found[way]?.push(lease);
  }
  return found.find((leases) => leases.length > 0) ?? [];
}

/** With or without a prefix length. */
export const addressIn = (text: string): Ip | undefined => parseIp(text) ?? parseCidr(text)?.ip;

/** What leases must share to count as one thing: for an address the network that it stands in, else the sandbox. */
const thingOf =
  (what: string) =>
  ({ owner }: Lease): string =>
    addressIn(what) === undefined ? owner.sandboxId : owner.network;

function notThere(snapshot: StoreSnapshot, what: string, network: string | undefined): string {
  const ip = addressIn(what);
  const where = network === undefined ? "" : ` in network "${network}"`;
  if (ip === undefined)
    return printable(
      `Cannot ${action}: nothing${where} is "${what}", wanted an address, a pod or a sandbox that "pipette ipam list" shows`,
    );
  const before = lastHolder(snapshot, ip, network);
  const pool = poolsOfStore(snapshot, network).find(({ windows }) => intervalAt(windows, ip) !== undefined);
  const lies = pool === undefined ? "and lies in no range that gave addresses" : `and lies in ${poolText(pool)}`;
  return printable(
    `Cannot ${action}: "${formatIp(ip)}" has no lease${where} ${lies}, wanted an address in use${before}`,
  );
}

/** The last holder of a cooled address, as long as no ADD has deleted its row. */
function lastHolder(snapshot: StoreSnapshot, ip: Ip, network: string | undefined): string {
  const last = snapshot.leases(network).find(({ address }) => sameIp(address.ip, ip));
  if (last?.releasedAtMs === undefined) return "";
  const pod = podText(last);
  const holder = `sandbox "${last.owner.sandboxId}" (${last.owner.ifname})${pod === undefined ? "" : ` of pod "${pod}"`}`;
  return `; it was last of ${holder}, until ${timeText(last.releasedAtMs)}`;
}

function details(lease: Lease, bootId: string, nowMs: number): string {
  const { owner, address, gateway, state, pod, generation } = lease;
  const boot =
    lease.bootId === "" ? "unknown" : lease.bootId === bootId ? "this one" : "an earlier one: the owner may be gone";
  const rows: readonly (readonly [string, string | undefined])[] = [
    ["address", formatCidr(address)],
    ["state", `${state} for ${formatAge(nowMs - inStateSinceMs(lease))}`],
    ["network", owner.network],
    ["sandbox", owner.sandboxId],
    ["interface", owner.ifname],
    ["pod", podText(lease)],
    ["pod uid", pod?.uid === "" ? undefined : pod?.uid],
    ["gateway", gateway === undefined ? undefined : formatIp(gateway)],
    ["range set", String(lease.rangeSet)],
    ["allocated", timeText(lease.allocatedAtMs)],
    ["released", lease.releasedAtMs === undefined ? undefined : timeText(lease.releasedAtMs)],
    ["boot", boot],
    ["generation", String(generation)],
  ];
  return formatTable(rows.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])));
}
