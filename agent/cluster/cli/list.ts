import { formatCidr, formatIp } from "../../../shared/net/ip.ts";
import { defineCommand } from "../../../shared/terminal/command.ts";
import { exitStatus } from "../../../shared/terminal/exit-status.ts";
import { formatJson } from "../../../shared/terminal/printable.ts";
import { formatTable } from "../../../shared/terminal/table.ts";
import { type Answer, nodesByAgent } from "../ask-agent.ts";
import { listNodes, type NodeListing } from "../listing.ts";
import type { ListedNode, NodeRegistry } from "../node-registry.ts";
import { textOfNode } from "../node-text.ts";
import { askRegistry, configOption, jsonOption } from "./with-registry.ts";

const action = "list the nodes";

const ask = {
  byAgent: (socket: string): Promise<Answer<NodeListing>> => nodesByAgent(socket, { rights: false }),
  itself: (registry: NodeRegistry): Promise<NodeListing> => listNodes(registry, { rights: false }),
};

export const list = defineCommand({
  action,
  about: `Shows every node of the registry: whether it was heard of lately, where it is reached, and which addresses its
pods have. A node that is lost keeps its subnet.`,
  options: { config: configOption, json: jsonOption },
  exits: {
    0: "done, also when there is none",
    1: "the registry does not answer, or something in it does not fit together",
  },
  run: ({ options }, io) =>
    askRegistry(options, action, io, ask, ({ name, nodes, revision }) => {
      const sorted = nodes.toSorted((a, b) => (a.name < b.name ? -1 : 1));
      if (options.json)
        io.stdout(
          formatJson({ registry: name, ...(revision === undefined ? {} : { revision }), nodes: sorted.map(nodeView) }),
        );
      else if (sorted.length === 0) io.stdout(`No nodes in ${name}\n`);
      else io.stdout(tableOf(sorted));
      return sorted.some(({ problem }) => problem !== undefined) ? exitStatus.failed : exitStatus.done;
    }),
});

export const nodeView = ({ state, problem, ...node }: ListedNode): Record<string, unknown> => ({
  ...textOfNode(node),
  state,
  ...(problem === undefined ? {} : { problem }),
});

function tableOf(nodes: readonly ListedNode[]): string {
  const problems = nodes.some(({ problem }) => problem !== undefined);
  return formatTable([
    ["NAME", "STATE", "ADDRESSES", "SUBNETS", "MAC", ...(problems ? ["PROBLEM"] : [])],
    ...nodes.map(({ name, state, addresses, subnets, mac, problem }) => [
      name,
      state,
      addresses.map(formatIp).join(",") || "-",
      subnets.map(formatCidr).join(",") || "-",
      mac ?? "-",
      ...(problems ? [problem ?? "-"] : []),
    ]),
  ]);
}
