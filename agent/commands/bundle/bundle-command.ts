import {
  archiveOf,
  BundleFile,
  bundleLimits,
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
} from "../../../operator/mod.ts";
import { isNodeName } from "../../../shared/documents/mod.ts";
import { CniCode, CniError } from "../../../shared/errors.ts";
import { paths } from "../../../shared/os/paths.ts";
import { reasonOf } from "../../../shared/reason.ts";
import { show } from "../../../shared/schema/json-fields.ts";
import { defineCommand, type OptionSpec } from "../../../shared/terminal/command.ts";
import { exitStatus } from "../../../shared/terminal/exit-status.ts";
import { counted, printable, printableLines } from "../../../shared/terminal/printable.ts";
import { Progress } from "../../../shared/terminal/progress.ts";
import type { TerminalIo } from "../../../shared/terminal/terminal-io.ts";
import type { AgentConfig } from "../../config/agent-config.ts";
import { nameOf } from "../../config/nodes-config.ts";
import { readText } from "../../config/read-config.ts";
import { hostItems, knownSecrets } from "./host-items.ts";
import { wantedOfCluster } from "./wanted-of-cluster.ts";

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

export interface Failure {
  readonly item: string;
  readonly reason: string;
}

/** What is asked for, and why a part of it is not. */
export interface Wanted {
  readonly items: readonly Item[];
  readonly nodes: readonly string[];
  readonly failures: readonly Failure[];
}

/** For the agent of this machine, or the API server, to say which nodes there are. */
const nodesMs = 20_000;

export const bundleCommand = defineCommand({
  action,
  about: `Collects what somebody else needs to find a fault: the documents of nodes, and of this machine its configuration, the
end of the agent's log, addresses, routes, rules and flows. By an API server also the logs of agents' pods, their state
and events, and what is installed. Each part has its own time; what cannot be had is named in index.md. Works without an
agent. Tokens, keys, passwords and CNI_ARGS are left out. Interrupted, it leaves nothing.`,
  options,
  exits: { 0: "it is written, whole", 1: "it is written, and lacks parts; or it cannot be written" },
  run: async ({ options: given }, io) => {
    const path = given.output ?? `pipette-bundle-${new Date().toISOString().slice(0, 19).replaceAll(":", "")}.tar.gz`;
    try {
      await using target = await BundleFile.open(path);
      await using resources = new AsyncDisposableStack();
      const config = await readText(given.config ?? paths.agentConfig, { ...io, stderr: () => undefined });
      const { items, nodes, failures } = await wantedOf(given, config, io, resources);
      const redactor = new Redactor(knownSecrets(config, io.env));
      using progress = new Progress(io, true);
      const told = (done: number, total: number): void => progress.at("parts collected", done, total);
      const atATime = nodes.length > 1 ? bundleLimits.atATimeOfCluster : bundleLimits.atATime;
      const collected = await collect(items, redactor, told, atATime);
      const whole = { files: collected.files, failures: [...failures, ...collected.failures] };
      await target.write(archiveOf(whole, { madeAtMs: Date.now(), nodes, leftOut: redactor.count }));
      progress[Symbol.dispose]();
      for (const line of failureLines(whole.failures)) io.stderr(`${printable(line)}\n`);
      io.stdout(`${printable(path)}: ${counted(whole.files.length, "file")} of ${counted(nodes.length, "node")}\n`);
      return whole.failures.length === 0 ? exitStatus.done : exitStatus.failed;
    } catch (caught) {
      io.stderr(`${printableLines(CniError.from(caught, action).message)}\n`);
      return exitStatus.failed;
    }
  },
});

/** Those alike of one folder in one line: a node that is away lacks all of its parts. `index.md` names each. */
function failureLines(failures: readonly Failure[]): readonly string[] {
  const folderOf = (item: string): string => item.slice(0, item.lastIndexOf("/") + 1);
  const alike = Map.groupBy(failures, ({ item, reason }) => `${folderOf(item)}\n${reason}`);
  return [...alike.values()].map(([first, ...more]) => {
    const others = more.map(({ item }) => item.slice(folderOf(item).length)).join(", ");
    return `without ${first?.item}${others === "" ? "" : `, ${others}`}: ${first?.reason}`;
  });
}

async function wantedOf(
  given: Given,
  config: AgentConfig | undefined,
  io: TerminalIo,
  resources: AsyncDisposableStack,
): Promise<Wanted> {
  const elsewhere = given.all || given.node.length > 0;
  if (given.all && given.node.length > 0)
    throw new CniError(
      CniCode.invalidConfig,
      `Cannot ${action}: "--all" and "--node" are both there, wanted one of them`,
    );
  // The agent of this node, where its configuration has it listen, is the way to this node only.
  const isCluster = elsewhere || given.kubeconfig !== undefined || given.context !== undefined;
  const socket = given.socket ?? (isCluster ? undefined : config?.socket);
  let source: DocumentSource | undefined;
  const failures: Failure[] = [];
  try {
    source = resources.use(await openSource({ ...given, bundle: undefined, socket }, elsewhere, io));
  } catch (caught) {
    // Of others there is nothing without it, and an archive of nothing would look like one of something.
    if (elsewhere) throw caught;
    failures.push({ item: "documents", reason: reasonOf(caught) });
  }
  if (elsewhere && source !== undefined) return await wantedOfCluster(source, given.all ? [] : given.node);
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
