import { type Monitored, OvsdbClient } from "../../protocols/ovsdb/mod.ts";
import { roleOf } from "./port-identity.ts";

/** What the data path follows of the database. */
const watched = {
  Open_vSwitch: ["cur_cfg"],
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

/** Interfaces of the system that are ports of bridges in user space, whoever made those; without pods'. */
export function readInUserSpace(view: SwitchView): readonly string[] {
  const bridges = [...view.rows("Bridge").values()].filter(({ datapath_type: kind }) => kind === "netdev");
  return bridges
    .flatMap(({ name }) => portsOf(view, name))
    .filter(({ external_ids }) => roleOf(external_ids) !== "pod")
    .flatMap(({ interfaces }) => [...interfaces].map((uuid) => view.row("Interface", uuid)))
    .flatMap((one) => (one !== undefined && (one.type === "" || one.type === "system") ? [one.name] : []))
    .sort();
}

/** Name of the node's own interface on the bridge, where an agent has put one there. */
export const uplinkOf = (view: SwitchView, bridge: string): string | undefined =>
  portsOf(view, bridge).find(({ external_ids }) => roleOf(external_ids) === "uplink")?.name;
