import { defineCommand } from "../../../shared/terminal/command.ts";
import { exitStatus } from "../../../shared/terminal/exit-status.ts";
import { formatJson } from "../../../shared/terminal/printable.ts";
import { formatTable } from "../../../shared/terminal/table.ts";
import type { EtcdNodeRegistry } from "../etcd/etcd-registry.ts";
import type { NodeRegistry } from "../node-registry.ts";
import { configOption, fail, jsonOption, withRegistry } from "./with-registry.ts";

const action = "repair the registry";

export const repair = defineCommand({
  action,
  about: `Looks for what does not fit together in a registry in etcd, such as a subnet that is taken by no node, and puts it
right where there is no doubt. Each repair counts only if nothing of what it is about has changed meanwhile, so it can
run beside nodes that join and leave.`,
  options: {
    "dry-run": { help: "only looks, and changes nothing" },
    config: configOption,
    json: jsonOption,
  },
  exits: { 0: "all fits together, or does now", 1: "failed, or something is left that a person has to look at" },
  run: ({ options }, io) =>
    withRegistry(options, action, io, async ({ registry }) => {
      if (!canRepair(registry)) return fail(io, action, `${registry.name} is kept by others`, "a registry in etcd");
      const repairs = await registry.repair({ dryRun: options["dry-run"] });
      if (options.json) io.stdout(formatJson({ registry: registry.name, repairs }));
      else if (repairs.length === 0) io.stdout("All fits together\n");
      else io.stdout(formatTable([["OUTCOME", "PROBLEM"], ...repairs.map((entry) => [entry.outcome, entry.problem])]));
      return repairs.every(({ outcome }) => outcome === "repaired") ? exitStatus.done : exitStatus.failed;
    }),
});

const canRepair = (registry: NodeRegistry): registry is EtcdNodeRegistry => "repair" in registry;
