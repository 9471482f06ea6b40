import type { SavedAdapter } from "../record.ts";
import type { HostSettings } from "../settings.ts";
import { type Adapter, sameName, type Tables, type VmAdapter } from "../tables.ts";
import { field, hostError, missing, type Step, there } from "./step.ts";

/** Open vSwitch's forwarding extension: the same on every node. */
const openVSwitch = "583CC151-73EC-4A6A-8B47-578297AD7623";

const isOurs = (entry: { readonly switchName: string; readonly id: string }, switchName: string): boolean =>
  sameName(entry.switchName, switchName) && sameName(entry.id, openVSwitch);

/** Enabled only after the network was created: during the creation it may prevent the move of the adapter's address. */
export const ovsExtension: Step = {
  name: "ovs extension",
  action: "enable the Open vSwitch extension",
  tables: ["extensions"],
  needed: (settings) => settings.ovsExtension,
  wanted: ({ settings }) => (settings.ovsExtension ? [{ switch: settings.hnsNetwork }] : []),
  judge: (thing, tables) => {
    const found = tables.get("extensions").find((entry) => isOurs(entry, field(thing, "switch")));
    if (found === undefined)
      throw hostError(
        ovsExtension.action,
        `switch "${thing["switch"]}" has no extension ${openVSwitch}`,
        "the HNS network and Open vSwitch installed",
      );
    return found.enabled ? there : missing();
  },
  make: (thing) => [change(field(thing, "switch"), "Enable-VMSwitchExtension")],
  undo: (thing, _before, tables) =>
    tables.get("extensions").some((entry) => isOurs(entry, field(thing, "switch")) && entry.enabled)
      ? [change(field(thing, "switch"), "Disable-VMSwitchExtension")]
      : [],
  describe: (thing) => `Open vSwitch extension of switch "${thing["switch"]}"`,
};

const change = (switchName: string, cmdlet: string) => ({
  cmdlet: "Get-VMSwitch",
  through: { cmdlet: "Get-VMSwitchExtension" },
  where: { SwitchName: switchName, Id: openVSwitch },
  into: { cmdlet },
});

/** With the extension, segment coalescing works only in software. */
export const softwareRsc: Step = {
  name: "software rsc",
  action: "enable software RSC on the switch",
  tables: ["switches"],
  needed: (settings) => settings.ovsExtension,
  wanted: ({ settings }) => (settings.ovsExtension ? [{ switch: settings.hnsNetwork }] : []),
  judge: (thing, tables) => {
    const found = tables.get("switches").find((entry) => sameName(entry.name, field(thing, "switch")));
    if (found === undefined) throw hostError(softwareRsc.action, `no switch is called "${thing["switch"]}"`);
    return found.softwareRsc ? there : missing();
  },
  make: (thing) => [setRsc(field(thing, "switch"), true)],
  undo: (thing, _before, tables) =>
    tables.get("switches").some((entry) => sameName(entry.name, field(thing, "switch")) && entry.softwareRsc)
      ? [setRsc(field(thing, "switch"), false)]
      : [],
  describe: (thing) => `software RSC of switch "${thing["switch"]}"`,
};

const setRsc = (switchName: string, enabled: boolean) => ({
  cmdlet: "Get-VMSwitch",
  where: { Name: switchName },
  into: { cmdlet: "Set-VMSwitch", args: { EnableSoftwareRsc: enabled } },
});

const needed = (settings: HostSettings): boolean => settings.bridgeName !== "";

/** The host's adapters on the switch of the network; narrowed to the card's own address where that is known. */
function onSwitch(tables: Tables, switchName: string, adapter: SavedAdapter | undefined): readonly VmAdapter[] {
  const all = tables.get("vmAdapters").filter((entry) => sameName(entry.switchName, switchName));
  const own = all.filter((entry) => entry.mac === adapter?.mac);
  return own.length > 0 ? own : all;
}

/**
 * The hardware address of the host's adapter on the network's switch.
 * @returns `undefined` where there is none yet
 */
export function virtualMac(tables: Tables, settings: HostSettings, adapter?: SavedAdapter): string | undefined {
  return onSwitch(tables, settings.hnsNetwork, adapter)[0]?.mac;
}

function requireMac(tables: Tables, settings: HostSettings, adapter: SavedAdapter | undefined): string {
  const mac = virtualMac(tables, settings, adapter);
  if (mac !== undefined) return mac;
  const is = `switch "${settings.hnsNetwork}" has no adapter on the host`;
  throw hostError("find the switch's adapter", is, "the one that Windows makes with the HNS network");
}

/** Two names are changed: this one, which Hyper-V knows the adapter by, and the one that Windows shows. */
export const switchAdapterName: Step = {
  name: "switch adapter name",
  action: "rename the switch's adapter",
  tables: ["vmAdapters"],
  names: true,
  needed,
  wanted: ({ settings, tables, adapter }) => [
    { switch: settings.hnsNetwork, mac: requireMac(tables, settings, adapter), name: settings.bridgeName },
  ],
  judge: (thing, tables) => {
    const found = findOnSwitch(thing, tables);
    if (found === undefined)
      throw hostError(
        switchAdapterName.action,
        `switch "${thing["switch"]}" has none with ${thing["mac"]}`,
        "that adapter",
      );
    return found.name === thing["name"] ? there : missing(found.name);
  },
  make: (thing) => [renameOnSwitch(thing, field(thing, "name"))],
  undo: (thing, before = "", tables) =>
    before !== "" && before !== thing["name"] && findOnSwitch(thing, tables)?.name === thing["name"]
      ? [renameOnSwitch(thing, before)]
      : [],
  describe: (thing) => `"${thing["name"]}", adapter of switch "${thing["switch"]}"`,
};

const findOnSwitch = (thing: Readonly<Record<string, string>>, tables: Tables): VmAdapter | undefined =>
  tables
    .get("vmAdapters")
    .find((entry) => sameName(entry.switchName, field(thing, "switch")) && entry.mac === thing["mac"]);

const renameOnSwitch = (thing: Readonly<Record<string, string>>, to: string) => ({
  cmdlet: "Get-VMNetworkAdapter",
  args: { ManagementOS: true },
  where: { SwitchName: field(thing, "switch"), MacAddress: field(thing, "mac").toUpperCase() },
  into: { cmdlet: "Rename-VMNetworkAdapter", args: { NewName: to } },
});

/** `vEthernet (…)` by default; found by MAC, because Windows may rename it again. */
export const adapterAlias: Step = {
  name: "adapter name",
  action: "rename the virtual adapter",
  tables: ["vmAdapters", "adapters"],
  names: true,
  needed,
  wanted: ({ settings, tables, adapter }) => [
    { mac: requireMac(tables, settings, adapter), name: settings.bridgeName },
  ],
  judge: (thing, tables) => {
    const own = withMac(thing, tables);
    if (own.some((entry) => entry.name === thing["name"])) return there;
    const taken = tables.get("adapters").find((entry) => isCalled(entry, field(thing, "name")) && !own.includes(entry));
    if (taken !== undefined) {
      const is = `"${thing["name"]}" is an adapter with address ${taken.mac || "none"}`;
      throw hostError(adapterAlias.action, is, `that name free for the one with ${thing["mac"]}`);
    }
    const [first, second] = own;
    if (first === undefined || second !== undefined) {
      const names = own.map((entry) => `"${entry.name}"`).join(", ") || "none";
      throw hostError(adapterAlias.action, `virtual adapters with ${thing["mac"]} are ${names}`, "one");
    }
    return missing(first.name);
  },
  make: (thing, tables) => withMac(thing, tables).map((entry) => rename(entry, field(thing, "name"))),
  undo: (thing, before = "", tables) =>
    before === "" || before === thing["name"]
      ? []
      : withMac(thing, tables)
          .filter((entry) => entry.name === thing["name"])
          .map((entry) => rename(entry, before)),
  describe: (thing) => `"${thing["name"]}", virtual adapter with ${thing["mac"]}`,
};

/** The card itself has the same address as the switch's adapter. */
const withMac = (thing: Readonly<Record<string, string>>, tables: Tables): readonly Adapter[] =>
  tables.get("adapters").filter((entry) => entry.virtual && entry.mac === thing["mac"]);

const isCalled = (entry: Adapter, name: string): boolean => sameName(entry.name, name);

const rename = (entry: Adapter, to: string) => ({
  cmdlet: "Get-NetAdapter",
  where: { InterfaceIndex: String(entry.index) },
  into: { cmdlet: "Rename-NetAdapter", args: { NewName: to } },
});
