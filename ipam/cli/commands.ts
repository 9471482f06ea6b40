import { type CommandGroup, defineGroup } from "../../shared/terminal/command.ts";

/** Everything that `pipette ipam` can do. */
export const ipamCommands: CommandGroup = defineGroup({
  about: `The addresses of this node. All of it works on the lease database itself, whether an agent runs or not;
look-ups change nothing.`,
  entries: [
    { name: "list", summary: "leases, one to a line", load: async () => (await import("./list.ts")).list },
    {
      name: "show",
      summary: "all about an address, a pod or a sandbox",
      load: async () => (await import("./show.ts")).show,
    },
    {
      name: "history",
      summary: "who had an address, and when",
      load: async () => (await import("./history.ts")).history,
    },
    { name: "map", summary: "a picture of the pool", load: async () => (await import("./map.ts")).map },
    { name: "stats", summary: "how full the pools are", load: async () => (await import("./stats.ts")).stats },
    {
      name: "allocate",
      summary: "give an attachment its addresses",
      load: async () => (await import("./allocate.ts")).allocate,
    },
    {
      name: "release",
      summary: "take an attachment's addresses back",
      load: async () => (await import("./release.ts")).release,
    },
    {
      name: "check",
      summary: "whether the database is in order",
      load: async () => (await import("./check.ts")).check,
    },
    {
      name: "gc",
      summary: "take back what no attachment holds any more",
      load: async () => (await import("./gc.ts")).gc,
    },
    {
      name: "import",
      summary: "take over the leases of host-local",
      load: async () => (await import("./import.ts")).importCommand,
    },
    {
      name: "export",
      summary: "write the leases for host-local",
      load: async () => (await import("./export.ts")).exportCommand,
    },
    {
      name: "names",
      summary: "what a completion offers",
      hidden: true,
      load: async () => (await import("./names.ts")).names,
    },
    {
      name: "serve",
      summary: "serve the allocator over gRPC",
      load: async () => (await import("./serve.ts")).serve,
    },
  ],
});
