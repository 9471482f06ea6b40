import { type CommandGroup, defineGroup } from "../../../shared/terminal/command.ts";

/** Everything that `pipette services` can do. */
export const servicesCommands: CommandGroup = defineGroup({
  about: "The services that the agent of this node has its data path balance, as the agent knows them.",
  entries: [
    {
      name: "list",
      summary: "each port of each service, and how many answer",
      load: async () => (await import("./list-and-show.ts")).listCommand,
    },
    {
      name: "show",
      summary: "one service: its addresses, and who answers where",
      load: async () => (await import("./list-and-show.ts")).showCommand,
    },
    {
      name: "trace",
      summary: "to which endpoints a packet to an address and port goes, and why",
      load: async () => (await import("./trace-command.ts")).traceCommand,
    },
  ],
});
