import { type Monitored, OvsdbClient, type RowChange, Transaction } from "../../../protocols/ovsdb/mod.ts";
import { lastRound } from "../pipeline/cookie.ts";
import { roleOf } from "./port-identity.ts";

/** The tables and columns that the data path monitors. */
const watched = {
  Open_vSwitch: ["cur_cfg", "other_config", "external_ids"],
  Bridge: ["name", "ports", "datapath_type", "fail_mode", "protocols", "other_config", "external_ids"],
  Port: ["name", "interfaces", "external_ids"],
  Interface: [
    "name",
    "type",
    "options",
    "ofport",
    "ofport_request",
    "error",
    "mac",
    "mac_in_use",
    "mtu_request",
    "ifindex",
  ],
} as const satisfies Monitored;

export type SwitchDatabase = OvsdbClient<typeof watched>;
type SwitchView = SwitchDatabase["view"];
export type PortRow = NonNullable<ReturnType<typeof portNamed>>;

/** Begins to connect. @throws {OvsdbError} for the address */
export const openDatabase = (address: string): SwitchDatabase => new OvsdbClient({ address, monitored: watched });

export const bridgeNamed = (view: SwitchView, name: string) => view.named("Bridge", name);
export const portNamed = (view: SwitchView, name: string) => view.named("Port", name);
/** An interface has its port's name, as all that are made here. */
export const interfaceNamed = (view: SwitchView, name: string) => view.named("Interface", name);

/** The ports of a bridge, none where there is no such bridge. */
export function portsOf(view: SwitchView, bridge: string): readonly PortRow[] {
  const uuids = bridgeNamed(view, bridge)?.ports ?? new Set();
  return [...uuids].map((uuid) => view.row("Port", uuid)).filter((row) => row !== undefined);
}

/** Interfaces of the node that are ports of user space bridges, whoever made them, without pods' interfaces. */
export function readInUserSpace(view: SwitchView): readonly string[] {
  const bridges = [...view.rows("Bridge").values()].filter(({ datapath_type: kind }) => kind === "netdev");
  return bridges
    .flatMap(({ name }) => portsOf(view, name))
    .filter(({ external_ids }) => roleOf(external_ids) !== "pod")
    .flatMap(({ interfaces }) => [...interfaces].map((uuid) => view.row("Interface", uuid)))
    .flatMap((one) => (one !== undefined && (one.type === "" || one.type === "system") ? [one.name] : []))
    .sort();
}

/** Types of interfaces by which nothing leaves that the node's kernel, or another interface, does not see. */
const innerTypes: readonly string[] = ["internal", "patch", "geneve", "vxlan", "gre", "stt", "erspan", "lisp", "gtpu"];

/** Interfaces of user space bridges by which a packet may leave the node, whoever made them. */
export function openInUserSpace(view: SwitchView): readonly string[] {
  const bridges = [...view.rows("Bridge").values()].filter(({ datapath_type: kind }) => kind === "netdev");
  return bridges
    .flatMap(({ name }) => portsOf(view, name))
    .filter(({ external_ids }) => roleOf(external_ids) !== "pod")
    .flatMap(({ interfaces }) => [...interfaces].map((uuid) => view.row("Interface", uuid)))
    .flatMap((one) => (one === undefined || innerTypes.includes(one.type) ? [] : [one.name]))
    .sort();
}

/** Name of the node's own interface on the bridge, where an agent has put one there. */
export const uplinkOf = (view: SwitchView, bridge: string): string | undefined =>
  portsOf(view, bridge).find(({ external_ids }) => roleOf(external_ids) === "uplink")?.name;

const bridgeColumns = ["name", "datapath_type", "fail_mode", "protocols", "other_config"] as const;

/**
 * Filters the changes of the database that need a reconciliation: not those that this agent's own calls have caused,
 * and not the switch's reports about ports that are right.
 * @param nodePorts names of the node's own ports
 * @param isHandled whether a port of this name is no pod's, or a running call handles it
 */
export const changeFilter =
  (nodePorts: { has(name: string): boolean }, isHandled: (port: string) => boolean) =>
  ({ table, before, after }: RowChange): boolean => {
    const isOther = (column: string): boolean => before?.[column] !== after?.[column];
    if (table === "Bridge") return bridgeColumns.some(isOther);
    if (table !== "Port" && table !== "Interface") return false;
    // An interface of the node may have joined or left another bridge.
    if (table === "Port" && isOther("name") && isForeign(after ?? before)) return true;
    const name = String((after ?? before)?.["name"]);
    if (nodePorts.has(name)) return true;
    return !isHandled(name) && (isOther("name") || isOther("ofport"));
  };

function isForeign(row: RowChange["after"]): boolean {
  const ids = row?.["external_ids"];
  return ids instanceof Map && roleOf(ids) === undefined;
}

const roundKey = "pipette-round";

/** Stores the number of the last round in the bridge's row, which disappears together with the flows. */
export const roundsOf = (db: SwitchDatabase, bridge: string) => ({
  async loadRound(): Promise<number | undefined> {
    const round = Number(bridgeNamed(db.view, bridge)?.external_ids.get(roundKey));
    return Number.isInteger(round) && round >= 1 && round <= lastRound ? round : undefined;
  },
  async saveRound(round: number): Promise<void> {
    const transaction = new Transaction(`keep the number of this start with the bridge "${bridge}"`);
    transaction.mutate("Bridge", [["name", "==", bridge]], [["external_ids", "delete", [roundKey]]]);
    transaction.mutate("Bridge", [["name", "==", bridge]], [["external_ids", "insert", { [roundKey]: String(round) }]]);
    await db.transact(transaction);
  },
});
