import { sameName } from "../tables.ts";
import { field, hostError, missing, type Step, there } from "./step.ts";

/** Open vSwitch's forwarding extension: the same on every node. */
const openVSwitch = "583CC151-73EC-4A6A-8B47-578297AD7623";

const isOurs = (entry: { readonly switchName: string; readonly id: string }, switchName: string): boolean =>
  sameName(entry.switchName, switchName) && sameName(entry.id, openVSwitch);

/** Enabled on the finished switch only: inside the network's creation it may keep the adapter from its address. */
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

/** With the extension in the way, segments are put together in software or not at all. */
export const softwareRsc: Step = {
  name: "software rsc",
  action: "enable software RSC on the switch",
  tables: ["switches"],
  needed: (settings) => settings.ovsExtension,
  wanted: ({ settings }) => (settings.ovsExtension ? [{ switch: settings.hnsNetwork }] : []),
  judge: (thing, tables) => {
    const found = tables.get("switches").find((entry) => sameName(entry.name, field(thing, "switch")));
    if (found === undefined) throw hostError(softwareRsc.action, `no switch is called "${thing["switch"]}"`, "one");
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
