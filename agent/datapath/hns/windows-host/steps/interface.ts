import type { Thing } from "../record.ts";
import type { Statement } from "../script.ts";
import type { IpInterface, Tables } from "../tables.ts";
import { sameName } from "../tables.ts";
import { field, hostError, missing, type Step, there } from "./step.ts";

const familyName = { 4: "IPv4", 6: "IPv6" } as const;

function find(tables: Tables, alias: string, family: string): IpInterface | undefined {
  return tables.get("interfaces").find((entry) => sameName(entry.alias, alias) && familyName[entry.family] === family);
}

/**
 * The interface called `alias`.
 * @throws {CniError} 102 listing the interfaces that there are
 */
export function requireInterface(tables: Tables, action: string, alias: string, family: string): IpInterface {
  const found = find(tables, alias, family);
  if (found !== undefined) return found;
  const all = [...new Set(tables.get("interfaces").map((entry) => entry.alias))].join('", "');
  throw hostError(action, `no ${family} interface is called "${alias}"`, `one of "${all}"`);
}

const required = (thing: Thing, tables: Tables, action: string): IpInterface =>
  requireInterface(tables, action, field(thing, "alias"), field(thing, "family"));

/** Windows forwards between interfaces only if both allow it, which is off by default. */
export const forwarding: Step = {
  name: "forwarding",
  action: "let the gateway interface forward",
  tables: ["interfaces"],
  needed: () => true,
  wanted: ({ settings: { gatewayInterface, gatewayPort, bridgeName, podSubnet } }) => {
    // With a gateway of Open vSwitch, the nodes' own packets use the switch's adapter.
    const behind = gatewayPort === undefined || bridgeName === "" ? [] : [bridgeName];
    return [gatewayInterface, ...behind].map((alias) => ({ alias, family: familyName[podSubnet.ip.family] }));
  },
  judge: (thing, tables) => {
    const entry = required(thing, tables, forwarding.action);
    return entry.forwarding === "Enabled" ? there : missing(entry.forwarding);
  },
  make: (thing, tables) => [setInterface(required(thing, tables, forwarding.action), "Forwarding", "Enabled")],
  undo: (thing, before = "Disabled", tables) => {
    const entry = find(tables, field(thing, "alias"), field(thing, "family"));
    const isOurs = entry?.forwarding === "Enabled" && before !== "Enabled";
    return isOurs ? [setInterface(entry, "Forwarding", before)] : [];
  },
  describe: (thing) => `${thing["family"]} forwarding on "${thing["alias"]}"`,
};

export const mtu: Step = {
  name: "mtu",
  action: "set the MTU of the gateway interface",
  tables: ["interfaces"],
  needed: (settings) => settings.mtu !== undefined,
  wanted: ({ settings: { mtu: bytes, gatewayInterface: alias, podSubnet } }) =>
    bytes === undefined ? [] : [{ alias, family: familyName[podSubnet.ip.family], mtu: String(bytes) }],
  judge: (thing, tables) => {
    const entry = required(thing, tables, mtu.action);
    return String(entry.mtu) === thing["mtu"] ? there : missing(String(entry.mtu));
  },
  make: (thing, tables) => [
    setInterface(required(thing, tables, mtu.action), "NlMtuBytes", Number(field(thing, "mtu"))),
  ],
  undo: (thing, before, tables) => {
    const entry = find(tables, field(thing, "alias"), field(thing, "family"));
    // A value that somebody has changed since is kept.
    const isOurs = entry !== undefined && String(entry.mtu) === thing["mtu"] && before !== thing["mtu"];
    return isOurs && before !== undefined ? [setInterface(entry, "NlMtuBytes", Number(before))] : [];
  },
  describe: (thing) => `MTU ${thing["mtu"]} on "${thing["alias"]}" (${thing["family"]})`,
};

/** By its index, because an alias is taken for a pattern. */
const setInterface = (entry: IpInterface, parameter: string, value: string | number): Statement => ({
  cmdlet: "Set-NetIPInterface",
  args: { InterfaceIndex: entry.index, AddressFamily: familyName[entry.family], [parameter]: value },
});
