import { type CommandGroup, defineGroup } from "../../../shared/terminal/command.ts";

/** Everything that `pipette nodes` can do. */
export const nodesCommands: CommandGroup = defineGroup({
  about: `The nodes of the cluster, in the registry that the agent's configuration names. What only
reads asks the agent of this node, where one runs, and says so where none does; what changes something asks the registry
itself.`,
  entries: [
    { name: "list", summary: "nodes, one to a line", load: async () => (await import("./nodes.ts")).list },
    {
      name: "register",
      summary: "give a node its subnet",
      load: async () => (await import("./nodes.ts")).register,
    },
    {
      name: "release",
      summary: "take a node out, and free its subnet",
      load: async () => (await import("./nodes.ts")).release,
    },
    {
      name: "repair",
      summary: "put right what does not fit together",
      load: async () => (await import("./nodes.ts")).repair,
    },
  ],
});

/** Everything that `pipette tenants` can do. */
export const tenantsCommands: CommandGroup = defineGroup({
  about: `Projects and their VNIDs, in the registry that the agent's configuration names: who reaches whom where the data path
keeps tenants apart.`,
  entries: [
    { name: "list", summary: "projects, one to a line", load: async () => (await import("./tenants.ts")).listTenants },
    {
      name: "join",
      summary: "let a project and another reach each other",
      load: async () => (await import("./tenants.ts")).joinTenants,
    },
    {
      name: "global",
      summary: "let a project and all others reach each other",
      load: async () => (await import("./tenants.ts")).globalTenant,
    },
    {
      name: "isolate",
      summary: "give a project a VNID of its own again",
      load: async () => (await import("./tenants.ts")).isolateTenant,
    },
    {
      name: "confirm",
      summary: "say that a project's VNID is meant as it is",
      load: async () => (await import("./tenants.ts")).confirmTenant,
    },
  ],
});
