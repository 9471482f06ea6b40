import {
  agentPodItems,
  archiveOf,
  clusterItems,
  collect,
  type DocumentSource,
  documentItems,
  type Item,
  openSource,
  Redactor,
  SocketSource,
  type Way,
  wayOptions,
  writeBundle,
} from "../../../operator/mod.ts";
import { isNodeName } from "../../../shared/documents/mod.ts";
import { ApiClient, operatorAccess } from "../../../shared/kubernetes/mod.ts";
import { paths } from "../../../shared/os/paths.ts";
import { reasonOf } from "../../../shared/reason.ts";
import { show } from "../../../shared/schema/json-fields.ts";
import { defineCommand, type OptionSpec } from "../../../shared/terminal/command.ts";
import { exitStatus } from "../../../shared/terminal/exit-status.ts";
import { counted, printable } from "../../../shared/terminal/printable.ts";
import { Progress } from "../../../shared/terminal/progress.ts";
import type { TerminalIo } from "../../../shared/terminal/terminal-io.ts";
import { nameOf } from "../../config/nodes-config.ts";
import { readText } from "../../config/read-config.ts";
import { hostItems, knownSecrets } from "./host-items.ts";

const action = "make a bundle";

const { bundle: _bundle, ...ways } = wayOptions;

/** The names are folders of the bundle, and nobody reads one with another name. */
const nodeRule = {
  wrong: (text: string) => (isNodeName(text) ? undefined : show(text)),
  wanted: "the name of a node",
};

const options = {
  node: {
    value: "NAME",
    repeats: true,
    rule: nodeRule,
    help: "of this node, by its agent (default: of this machine, whether its agent runs or not)",
  },
  all: { help: "of all nodes, by their agents" },
  output: {
    value: "FILE",
    short: "o",
    of: "file",
    help: "what to write, .tar.gz (default pipette-bundle-TIME.tar.gz here)",
  },
  log: { value: "FILE", of: "file", help: "the agent's log (default: the journal of this node)" },
  config: { value: "FILE", of: "file", help: `the agent's configuration (default ${paths.agentConfig})` },
  ...ways,
} as const satisfies Readonly<Record<string, OptionSpec>>;

interface Given extends Omit<Way, "bundle"> {
  readonly node: readonly string[];
  readonly all: boolean;
  readonly output: string | undefined;
  readonly log: string | undefined;
  readonly config: string | undefined;
}

/** What is asked for, and why a part of it is not. */
interface Wanted {
  readonly items: readonly Item[];
  readonly nodes: readonly string[];
  readonly failures: readonly { readonly item: string; readonly reason: string }[];
}

/** For the nodes of a cluster to be listed. */
const nodesMs = 20_000;

export const bundleCommand = defineCommand({
  action,
  about: `Collects what somebody else needs to find a fault: the documents of nodes, and of this machine its configuration, the
end of the agent's log, addresses, routes, rules and flows. Each part has its own time; what cannot be had is named in
index.md. Works without an agent. Tokens, keys, passwords and CNI_ARGS are left out.`,
  options,
  exits: { 0: "it is written, whole", 1: "it is written, and lacks parts; or it cannot be written" },
  run: async ({ options: given }, io) => {
    await using resources = new AsyncDisposableStack();
    const file = given.output ?? `pipette-bundle-${new Date().toISOString().slice(0, 19).replaceAll(":", "")}.tar.gz`;
    const config = await readText(given.config ?? paths.agentConfig, { ...io, stderr: () => undefined });
    const { items, nodes, failures } = await wantedOf(given, config, io, resources);
    const redactor = new Redactor(knownSecrets(config, io.env));
    using progress = new Progress(io, true);
    const collected = await collect(items, redactor, (done, total) => progress.at("parts collected", done, total));
    const whole = { files: collected.files, failures: [...failures, ...collected.failures] };
    await writeBundle(file, archiveOf(whole, { madeAtMs: Date.now(), nodes, leftOut: redactor.count }));
    for (const { item, reason } of whole.failures) io.stderr(`${printable(`without ${item}: ${reason}`)}\n`);
    io.stdout(`${printable(file)}: ${counted(whole.files.length, "file")} of ${counted(nodes.length, "node")}\n`);
    return whole.failures.length === 0 ? exitStatus.done : exitStatus.failed;
  },
});

async function wantedOf(
  given: Given,
  config: Awaited<ReturnType<typeof readText>>,
  io: TerminalIo,
  resources: AsyncDisposableStack,
): Promise<Wanted> {
  const elsewhere = given.all || given.node.length > 0;
  // The agent of this node, where its configuration has it listen, is the way to this node only.
  const isCluster = elsewhere || given.kubeconfig !== undefined || given.context !== undefined;
  const socket = given.socket ?? (isCluster ? undefined : config?.socket);
  let source: DocumentSource | undefined;
  const failures: { item: string; reason: string }[] = [];
  try {
    source = resources.use(await openSource({ ...given, bundle: undefined, socket }, elsewhere, io));
  } catch (caught) {
    failures.push({ item: "documents", reason: reasonOf(caught) });
  }
  const named = elsewhere ? await chosen(source, given, failures) : undefined;
  if (named !== undefined) {
    const pods = await podItems(source, named, given, io, resources);
    return {
      nodes: named,
      failures,
      items: [
        ...(source === undefined
          ? []
          : [...clusterItems(source), ...named.flatMap((node) => documentItems(source, node))]),
        ...pods,
      ],
    };
  }
  const own = nameOf(config?.nodes ?? {});
  const served = source === undefined ? undefined : await nodeHere(source, own, failures);
  const node = served ?? own;
  const hasAgent = served !== undefined;
  const host = hostItems({ node, configFile: given.config ?? paths.agentConfig, config, log: given.log, hasAgent });
  const documents = source === undefined || !hasAgent ? [] : [...clusterItems(source), ...documentItems(source, node)];
  return { nodes: [node], failures, items: [...documents, ...host] };
}

/**
 * The name under which this machine's agent can be asked. An API server knows many nodes, and what this machine has must
 * not lie under the name of another one.
 */
async function nodeHere(
  source: DocumentSource,
  own: string,
  failures: { item: string; reason: string }[],
): Promise<string | undefined> {
  try {
    const nodes = await source.nodes(AbortSignal.timeout(nodesMs));
    if (source instanceof SocketSource) return nodes[0];
    if (nodes.includes(own)) return own;
    failures.push({
      item: "documents",
      reason: "the API server knows no agent of this machine, wanted --node or --all",
    });
  } catch (caught) {
    failures.push({ item: "documents", reason: reasonOf(caught) });
  }
  return undefined;
}

async function chosen(
  source: DocumentSource | undefined,
  { all, node: given }: Given,
  failures: { item: string; reason: string }[],
): Promise<readonly string[]> {
  const node = [...new Set(given)];
  if (!all || source === undefined) return node;
  try {
    return await source.nodes(AbortSignal.timeout(nodesMs));
  } catch (caught) {
    failures.push({ item: "nodes", reason: reasonOf(caught) });
    return node;
  }
}

/** Of the agents' pods, which the API server knows also while an agent is dead. */
async function podItems(
  source: DocumentSource | undefined,
  nodes: readonly string[],
  { kubeconfig, context }: Given,
  io: TerminalIo,
  resources: AsyncDisposableStack,
): Promise<readonly Item[]> {
  try {
    const cluster = await source?.cluster(AbortSignal.timeout(nodesMs));
    const pods = (cluster?.nodes ?? []).filter(({ name, agentPod }) => nodes.includes(name) && agentPod !== undefined);
    if (pods.length === 0) return [];
    const access = await operatorAccess({ file: kubeconfig, context }, io.env);
    const client = resources.use(new ApiClient(access, { env: io.env }));
    return pods.flatMap(({ name, agentPod = "" }) => agentPodItems(client, name, agentPod));
  } catch {
    // The documents' own failures say that the API server does not answer.
    return [];
  }
}
