import { type Cidr, contains, formatCidr, formatIp, type Ip, sameIp } from "../../../../shared/net/ip.ts";
import type { HostRunner } from "./powershell.ts";
import { HostRecord, type SavedAdapter } from "./record.ts";
import type { HostSettings } from "./settings.ts";
import { hostError } from "./steps/step.ts";
import { type Adapter, sameName, type TableName, Tables } from "./tables.ts";

/** The card that the HNS network is made on. */
export interface HostAdapter {
  readonly alias: string;
  readonly index: number;
  /** `00-15-5D-01-02-03`, as HNS writes it. */
  readonly mac: string;
  readonly prefixLength: number;
}

const action = "find the node's adapter";
const tables: readonly TableName[] = ["adapters", "addresses", "interfaces", "routes", "dnsServers"];

/**
 * The adapter that holds `nodeAddress`. It must be a card: one that is virtual belongs to a switch already, and no
 * second one can be made on it.
 * @throws {CniError} 102 where none holds it, or a virtual one
 */
export async function findAdapter(nodeAddress: Ip, run: HostRunner): Promise<HostAdapter> {
  const seen = await Tables.list(run, action, tables);
  return toHostAdapter(requireCard(seen, nodeAddress));
}

/**
 * The adapter that has this address of the node, of whatever kind it is: its hardware address as HNS writes it, and an
 * IPv6 address of it that others reach.
 * @throws {CniError} 102
 */
export async function nodeInterface(
  nodeAddress: Ip,
  run: HostRunner,
): Promise<{ readonly mac: string; readonly ipv6?: Ip }> {
  const seen = await Tables.list(run, action, ["adapters", "addresses"]);
  const adapter = adapterOf(seen, nodeAddress);
  if (adapter === undefined) throw hostError(action, `no adapter holds ${formatIp(nodeAddress)}`, "one that does");
  const ipv6 = seen
    .get("addresses")
    .find(({ ip, index }) => index === adapter.index && ip.family === 6 && !contains(linkLocal, ip))?.ip;
  return { mac: hnsMac(adapter.mac), ...(ipv6 === undefined ? {} : { ipv6 }) };
}

/** Of each adapter, and known on its own link alone. */
const linkLocal: Cidr = { ip: { family: 6, value: 0xfe80n << 112n }, prefix: 10 };

/** What `prepareHost` needs of the settings; `adapter` is the name that the card must have, where one is asked for. */
export type PrepareSettings = Pick<HostSettings, "dataDir" | "nodeAddress" | "hnsNetwork"> & {
  readonly adapter?: string;
};

/**
 * To be called before an HNS network is created: finds the adapter and records its settings, because the network takes
 * its address and does not always move it to the switch's adapter. If an earlier, killed run has created the network
 * already, the adapter comes from the record.
 * @throws {CniError} as `findAdapter`
 */
export async function prepareHost(settings: PrepareSettings, run: HostRunner): Promise<HostAdapter> {
  const record = HostRecord.open(settings.dataDir, settings.hnsNetwork);
  const seen = await Tables.list(run, action, tables);
  const taken = takenBefore(record.adapter, settings, seen);
  if (taken !== undefined) return toHostAdapter(taken);
  const card = requireCard(seen, settings.nodeAddress);
  if (settings.adapter !== undefined && !sameName(settings.adapter, card.name))
    throw hostError(action, `${formatIp(settings.nodeAddress)} is on "${card.name}"`, `it on "${settings.adapter}"`);
  record.saveAdapter(card);
  return toHostAdapter(card);
}

/**
 * The recorded adapter, if no physical adapter has its address: then it is on the switch's adapter, or about to move
 * there.
 */
function takenBefore(
  saved: SavedAdapter | undefined,
  settings: PrepareSettings,
  seen: Tables,
): SavedAdapter | undefined {
  if (saved === undefined || saved.address.split("/")[0] !== formatIp(settings.nodeAddress)) return undefined;
  const holder = adapterOf(seen, settings.nodeAddress);
  const isOnItsWay = holder === undefined || (holder.virtual && holder.mac === saved.mac);
  const isThere = seen.get("adapters").some((entry) => !entry.virtual && entry.mac === saved.mac);
  return isOnItsWay && isThere ? saved : undefined;
}

function adapterOf(seen: Tables, address: Ip): Adapter | undefined {
  const held = seen.get("addresses").find((entry) => sameIp(entry.ip, address));
  return seen.get("adapters").find((entry) => entry.index === held?.index);
}

function requireCard(seen: Tables, nodeAddress: Ip): SavedAdapter {
  const card = adapterOf(seen, nodeAddress);
  const address = seen.get("addresses").find((entry) => sameIp(entry.ip, nodeAddress));
  if (card === undefined || address === undefined) {
    const all = seen.get("addresses").map((entry) => formatIp(entry.ip));
    throw hostError(action, `no adapter holds ${formatIp(nodeAddress)}`, `one of ${all.join(", ")}`);
  }
  if (card.virtual) {
    const is = `"${card.name}", which holds ${formatIp(nodeAddress)}, is virtual`;
    throw hostError(action, is, "a card that no switch has taken");
  }
  return saved(seen, card, { ip: nodeAddress, prefix: address.prefix });
}

function saved(seen: Tables, card: Adapter, address: Cidr): SavedAdapter {
  const { family } = address.ip;
  const routes = seen
    .get("routes")
    .filter((route) => route.index === card.index && route.destination.ip.family === family);
  const gateway = routes
    .filter((route) => route.destination.prefix === 0)
    .sort((a, b) => a.metric - b.metric)[0]?.nextHop;
  const through = gateway === undefined ? [] : routes.filter((route) => sameIp(route.nextHop, gateway));
  const servers = seen.get("dnsServers").filter((entry) => entry.index === card.index);
  return {
    name: card.name,
    index: card.index,
    mac: card.mac,
    address: formatCidr(address),
    dhcp: seen.get("interfaces").some((entry) => entry.index === card.index && entry.family === family && entry.dhcp),
    // An on-link default route has no gateway.
    gateway: gateway === undefined || gateway.value === 0n ? "" : formatIp(gateway),
    dnsServers: servers.flatMap((entry) => entry.servers).filter((text) => isOf(family, text)),
    routes: through
      .filter((route) => route.destination.prefix > 0 && gateway?.value !== 0n)
      .map((route) => ({
        destination: formatCidr(route.destination),
        nextHop: formatIp(route.nextHop),
        metric: route.metric,
      })),
  };
}

const isOf = (family: 4 | 6, text: string): boolean => text.includes(":") === (family === 6);

function toHostAdapter({ name, index, mac, address }: SavedAdapter): HostAdapter {
  return {
    alias: name,
    index,
    mac: hnsMac(mac),
    prefixLength: Number(address.split("/")[1]),
  };
}

/** @param mac twelve digits */
const hnsMac = (mac: string): string => (mac.match(/../g) ?? []).join("-").toUpperCase();
