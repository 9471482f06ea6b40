import type { CommandGroup } from "../shared/terminal/command.ts";

/** `pipette ipam …`; loaded apart from the rest, so that the plugin, which shares the way in, does not carry it. */
export async function loadIpamCommands(): Promise<CommandGroup> {
  return (await import("./cli/commands.ts")).ipamCommands;
}
