import { formatCidr, formatIp, type Ip, parseIp } from "../../../shared/net/ip.ts";
import { interfaceMac, macRule } from "../../../shared/net/mac.ts";
import { nodeAddressRule, parseNodeAddress } from "../../../shared/net/node-address.ts";
import { defineCommand } from "../../../shared/terminal/command.ts";
import { exitStatus } from "../../../shared/terminal/exit-status.ts";
import { formatJson, printable } from "../../../shared/terminal/printable.ts";
import { formatTable } from "../../../shared/terminal/table.ts";
import { type Answer, nodesByAgent } from "../ask-agent.ts";
import type { EtcdNodeRegistry } from "../etcd/etcd-registry.ts";
import { listNodes, type NodeListing } from "../listing.ts";
import type { ListedNode, NodeRegistry, Registration } from "../node-registry.ts";
import { textOfNode } from "../node-text.ts";
import { ownEncryption } from "../own-key.ts";
import { configuredAddresses, findOwnAddresses, nodeUid } from "../this-node.ts";
import { askRegistry, configOption, fail, jsonOption, type Opened, refuseName, withRegistry } from "./with-registry.ts";

const listAction = "list the nodes";

const ask = {
  byAgent: (socket: string): Promise<Answer<NodeListing>> => nodesByAgent(socket, { rights: false }),
  itself: (registry: NodeRegistry): Promise<NodeListing> => listNodes(registry, { rights: false }),
};

export const list = defineCommand({
  action: listAction,
  about: `Shows every node of the registry: whether it was heard of lately, where it is reached, and which addresses its
pods have. A node that is lost keeps its subnet.`,
  options: { config: configOption, json: jsonOption },
  exits: {
    0: "done, also when there is none",
    1: "the registry does not answer, or something in it does not fit together",
  },
  run: ({ options }, io) =>
    askRegistry(options, listAction, io, ask, ({ name, nodes, revision }) => {
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

const nodeView = ({ state, problem, ...node }: ListedNode): Record<string, unknown> => ({
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

const registerAction = "register the node";

export const register = defineCommand({
  action: registerAction,
  about: `Registers this node, as its agent does when it starts, and shows the subnet that it has then; the same again changes
nothing. With NAME it is another node, of which nothing can be found out here: --uid and --address say it.`,
  operands: [{ name: "NAME", help: "the node (default: this one)", optional: true }],
  options: {
    address: {
      value: "ADDRESS",
      help: "where the others reach it, one of each family at most (default for this node: what the configuration or its interfaces say)",
      repeats: true,
      rule: { wrong: (text) => (parseNodeAddress(text) === undefined ? "none" : undefined), wanted: nodeAddressRule },
    },
    mac: {
      value: "MAC",
      help: "of the interface with that address",
      rule: { wrong: (text) => (interfaceMac(text) === undefined ? "none" : undefined), wanted: macRule },
    },
    uid: {
      value: "UID",
      help: 'the machine\'s own, from "node-uid" of its data directory (default for this node: what stands there)',
      rule: {
        wrong: (text) => (/^[A-Za-z0-9-]{1,64}$/.test(text) ? undefined : "none"),
        wanted: "1 to 64 letters, digits or dashes",
      },
    },
    config: configOption,
    json: jsonOption,
  },
  exits: { 1: "failed: the registry does not answer, the name is another machine's, no subnet is free" },
  run: ({ options, operands: [name] }, io) =>
    withRegistry(options, registerAction, io, async (opened) => {
      const { registry, nodes } = opened;
      const refused = name === undefined ? undefined : refuseName(io, registerAction, name);
      if (refused !== undefined) return refused;
      const addresses = options.address.map(parseIp).filter((ip): ip is Ip => ip !== undefined);
      const other = name !== undefined && name !== nodes.name;
      if (other && (options.uid === undefined || addresses.length === 0))
        return fail(
          io,
          registerAction,
          `"${name}" is not this node`,
          "--uid and --address for it",
          exitStatus.wrongArguments,
        );
      const mac = options.mac === undefined ? undefined : interfaceMac(options.mac);
      const said = {
        name: name ?? nodes.name,
        ...(options.uid === undefined ? {} : { uid: options.uid }),
        ...(mac === undefined ? {} : { mac }),
      };
      const self = other ? { uid: "", ...said, addresses } : await ownRegistration(opened, addresses, said);
      const node = await registry.register(self);
      if (options.json) io.stdout(formatJson(textOfNode(node)));
      else io.stdout(`${printable(node.name)} has ${node.subnets.map(formatCidr).join(", ")}\n`);
      return exitStatus.done;
    }),
});

async function ownRegistration(
  { config, nodes }: Opened,
  addresses: readonly Ip[],
  said: Partial<Registration> & { readonly name: string },
): Promise<Registration> {
  const own = await findOwnAddresses(addresses.length > 0 ? addresses : configuredAddresses(config));
  const mac = nodes.mac ?? own.mac;
  const uid = said.uid ?? nodeUid(config.dataDir);
  const encryption = ownEncryption(config);
  const secured = encryption === undefined ? {} : { encryption };
  return { ...(mac === undefined ? {} : { mac }), ...said, ...secured, uid, addresses: own.addresses };
}

const releaseAction = "release the node";

export const release = defineCommand({
  action: releaseAction,
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
    withRegistry(options, releaseAction, io, async ({ registry }) => {
      const refused = refuseName(io, releaseAction, name);
      if (refused !== undefined) return refused;
      const node = (await registry.list()).find((candidate) => candidate.name === name);
      if (node === undefined)
        return fail(io, releaseAction, `${registry.name} has no node "${name}"`, undefined, exitStatus.notThere);
      if (!options.force && node.state === "ready")
        return fail(io, releaseAction, `"${name}" was heard of lately, and its pods may run`, "--force");
      const unreadable = node.uid === "" && node.problem !== undefined;
      if (!options.force && unreadable)
        return fail(io, releaseAction, `"${name}" cannot be read: ${node.problem}`, "--force");
      const done = await registry.release(name, unreadable || node.uid === "" ? undefined : node.uid);
      if (!done)
        return fail(
          io,
          releaseAction,
          `"${name}" has gone, or is another machine by now`,
          undefined,
          exitStatus.notThere,
        );
      if (options.json) io.stdout(formatJson({ released: nodeView(node) }));
      else
        io.stdout(`Released ${printable(name)}; free now: ${node.subnets.map(formatCidr).join(", ") || "nothing"}\n`);
      return exitStatus.done;
    }),
});

const repairAction = "repair the registry";

export const repair = defineCommand({
  action: repairAction,
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
    withRegistry(options, repairAction, io, async ({ registry }) => {
      if (!canRepair(registry))
        return fail(io, repairAction, `${registry.name} is kept by others`, "a registry in etcd");
      const repairs = await registry.repair({ dryRun: options["dry-run"] });
      if (options.json) io.stdout(formatJson({ registry: registry.name, repairs }));
      else if (repairs.length === 0) io.stdout("All fits together\n");
      else io.stdout(formatTable([["OUTCOME", "PROBLEM"], ...repairs.map((entry) => [entry.outcome, entry.problem])]));
      return repairs.every(({ outcome }) => outcome === "repaired") ? exitStatus.done : exitStatus.failed;
    }),
});

const canRepair = (registry: NodeRegistry): registry is EtcdNodeRegistry => "repair" in registry;
