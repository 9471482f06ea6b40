import { formatCidr } from "../../../shared/net/ip.ts";
import { defineCommand } from "../../../shared/terminal/command.ts";
import { exitStatus } from "../../../shared/terminal/exit-status.ts";
import { formatJson, printable } from "../../../shared/terminal/printable.ts";
import { nodeView } from "./list.ts";
import { configOption, fail, jsonOption, refuseName, withRegistry } from "./with-registry.ts";

const action = "release the node";

export const release = defineCommand({
  action,
  about: `Takes a node out of the registry and frees its subnet, which the next node to join may get: for nodes that will
not come back. What is taken out is the very node that was seen, and no other that has come under its name since.

A node that was heard of lately wants --force: its pods go on with addresses that may be another node's soon. Its
agent gives none of them to new pods any more, and joins anew when its pods are gone.`,
  operands: [{ name: "NAME", help: "the node" }],
  options: {
    force: { help: "also where the node was heard of lately, or its record cannot be read" },
    config: configOption,
    json: jsonOption,
  },
  exits: { 1: "failed, or --force is wanted", 3: "there is no such node" },
  run: ({ options, operands: [name = ""] }, io) =>
    withRegistry(options, action, io, async ({ registry }) => {
      const refused = refuseName(io, action, name);
      if (refused !== undefined) return refused;
      const node = (await registry.list()).find((candidate) => candidate.name === name);
      if (node === undefined)
        return fail(io, action, `${registry.name} has no node "${name}"`, "one that is there", exitStatus.notThere);
      if (!options.force && node.state === "ready")
        return fail(io, action, `"${name}" was heard of lately, and its pods may run`, "--force");
      const unreadable = node.uid === "" && node.problem !== undefined;
      if (!options.force && unreadable) return fail(io, action, `"${name}" cannot be read: ${node.problem}`, "--force");
      const done = await registry.release(name, unreadable || node.uid === "" ? undefined : node.uid);
      if (!done)
        return fail(
          io,
          action,
          `"${name}" has gone, or is another machine by now`,
          "it as it was",
          exitStatus.notThere,
        );
      if (options.json) io.stdout(formatJson({ released: nodeView(node) }));
      else
        io.stdout(`Released ${printable(name)}; free now: ${node.subnets.map(formatCidr).join(", ") || "nothing"}\n`);
      return exitStatus.done;
    }),
});
