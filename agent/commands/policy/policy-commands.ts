import { type CommandGroup, defineGroup } from "../../../shared/terminal/command.ts";

/** Everything that `pipette policy` can do. */
export const policyCommands: CommandGroup = defineGroup({
  about: `The NetworkPolicies of the cluster, as the API server has them: who may reach whom, and what would change. Needs the
right to list networkpolicies, pods and namespaces, and no agent.`,
  entries: [
    {
      name: "list",
      summary: "policies, how many pods they isolate, and on how many nodes they are enforced",
      load: async () => (await import("./list-command.ts")).listCommand,
    },
    {
      name: "show",
      summary: "one policy in words, its pods, and what its rules come to",
      load: async () => (await import("./show-command.ts")).showCommand,
    },
    {
      name: "why",
      summary: "may one reach the other, and which rules say so",
      load: async () => (await import("./why-command.ts")).whyCommand,
    },
    {
      name: "matrix",
      summary: "who reaches whom, all pods against all",
      load: async () => (await import("./matrix-command.ts")).matrixCommand,
    },
    {
      name: "what-if",
      summary: "what would change between pods, before anything is applied",
      load: async () => (await import("./what-if-command.ts")).whatIfCommand,
    },
  ],
});
