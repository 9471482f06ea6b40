import { type Cidr, formatCidr, formatIp, parseCidr, sameIp } from "../../../../../shared/net/ip.ts";
import type { Thing } from "../record.ts";
import type { Statement } from "../script.ts";
import type { GatewayPort, HostSettings } from "../settings.ts";
import { type Adapter, plainMac, sameName, type Tables } from "../tables.ts";
import { requireInterface } from "./interface.ts";
import { field, hostError, missing, type Step, there } from "./step.ts";

const needed = (settings: HostSettings): boolean => settings.gatewayPort !== undefined;

/** What a step wants of the gateway's adapter, where the gateway is a port of Open vSwitch's. */
const wantedOf = (settings: HostSettings, thing: (port: GatewayPort) => Thing): readonly Thing[] =>
  settings.gatewayPort === undefined ? [] : [{ alias: settings.gatewayInterface, ...thing(settings.gatewayPort) }];

/** The adapter of Open vSwitch's internal port. */
export const gatewayAdapter = (tables: Tables, alias: string): Adapter | undefined =>
  tables.get("adapters").find((entry) => sameName(entry.name, alias));

function required(thing: Thing, tables: Tables, action: string): Adapter {
  const found = gatewayAdapter(tables, field(thing, "alias"));
  if (found !== undefined) return found;
  const all = tables.get("adapters").map((entry) => `"${entry.name}"`);
  const wanted = `the one of Open vSwitch's internal port, beside ${all.join(", ")}`;
  throw hostError(action, `no adapter is called "${thing["alias"]}"`, wanted);
}

const change = ({ index }: Adapter, cmdlet: string, args: Statement["args"] = {}): Statement => ({
  cmdlet: "Get-NetAdapter",
  where: { InterfaceIndex: String(index) },
  into: { cmdlet, args: { ...args, Confirm: false } },
});

/** The adapter of a new internal port is switched off. Never undone: it goes with the port. */
export const gatewayUp: Step = {
  name: "gateway up",
  action: "switch the gateway's adapter on",
  tables: ["adapters"],
  needed,
  wanted: ({ settings }) => wantedOf(settings, () => ({})),
  judge: (thing, tables) => (required(thing, tables, gatewayUp.action).disabled ? missing() : there),
  make: (thing, tables) => [change(required(thing, tables, gatewayUp.action), "Enable-NetAdapter")],
  undo: () => [],
  describe: (thing) => `"${thing["alias"]}", switched on`,
};

/** Open vSwitch's own setting for a MAC has no effect on Windows, and pods use this MAC. Never undone. */
export const gatewayMac: Step = {
  name: "gateway mac",
  action: "give the gateway's adapter its hardware address",
  tables: ["adapters"],
  needed,
  wanted: ({ settings }) => wantedOf(settings, ({ mac }) => ({ mac: plainMac(mac) })),
  judge: (thing, tables) => (required(thing, tables, gatewayMac.action).mac === thing["mac"] ? there : missing()),
  make: (thing, tables) => {
    const MacAddress = (field(thing, "mac").match(/../g) ?? []).join("-").toUpperCase();
    return [change(required(thing, tables, gatewayMac.action), "Set-NetAdapter", { MacAddress })];
  },
  undo: () => [],
  describe: (thing) => `hardware address ${thing["mac"]} on "${thing["alias"]}"`,
};

/** In the active store only, as the routes: after a reboot the adapter is another one. */
export const gatewayAddress: Step = {
  name: "gateway address",
  action: "give the gateway's adapter its address",
  tables: ["interfaces", "addresses"],
  needed,
  wanted: ({ settings }) => wantedOf(settings, ({ address }) => ({ address: formatCidr(address) })),
  judge: (thing, tables) => {
    const { index } = interfaceOf(thing, tables);
    const { ip, prefix } = addressOf(thing);
    const holders = tables.get("addresses").filter((entry) => sameIp(entry.ip, ip));
    const elsewhere = holders.find((entry) => entry.index !== index);
    if (elsewhere !== undefined) {
      const alias = tables.get("interfaces").find((entry) => entry.index === elsewhere.index)?.alias;
      const is = `${formatIp(ip)} is on "${alias ?? `interface ${elsewhere.index}`}"`;
      throw hostError(gatewayAddress.action, is, `it on "${thing["alias"]}" or on none`);
    }
    return holders.some((entry) => entry.prefix === prefix) ? there : missing();
  },
  make: (thing, tables) => {
    const { index } = interfaceOf(thing, tables);
    const { ip, prefix } = addressOf(thing);
    const old = tables.get("addresses").some((entry) => entry.index === index && sameIp(entry.ip, ip));
    const args = { InterfaceIndex: index, IPAddress: formatIp(ip), PrefixLength: prefix, PolicyStore: "ActiveStore" };
    return [...(old ? [removal(index, formatIp(ip))] : []), { cmdlet: "New-NetIPAddress", args }];
  },
  undo: (thing, _before, tables) => {
    const index = tables.get("interfaces").find((entry) => sameName(entry.alias, field(thing, "alias")))?.index;
    const { ip, prefix } = addressOf(thing);
    return tables
      .get("addresses")
      .filter((entry) => entry.index === index && entry.prefix === prefix && sameIp(entry.ip, ip))
      .map((entry) => removal(entry.index, formatIp(ip)));
  },
  describe: (thing) => `${thing["address"]} on "${thing["alias"]}"`,
};

const interfaceOf = (thing: Thing, tables: Tables) =>
  requireInterface(
    tables,
    gatewayAddress.action,
    field(thing, "alias"),
    addressOf(thing).ip.family === 4 ? "IPv4" : "IPv6",
  );

function addressOf(thing: Thing): Cidr {
  const address = parseCidr(field(thing, "address"));
  if (address !== undefined) return address;
  throw hostError(gatewayAddress.action, `"address" on record is "${thing["address"]}"`, "one with its prefix");
}

const removal = (index: number, address: string): Statement => ({
  cmdlet: "Get-NetIPAddress",
  where: { IPAddress: address, InterfaceIndex: String(index) },
  into: { cmdlet: "Remove-NetIPAddress", args: { Confirm: false } },
});
