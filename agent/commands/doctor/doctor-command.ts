import { statSync } from "node:fs";
import { formOf, nodesAsData, outputOption, showNodes, watchOption } from "../../../operator/commands/mod.ts";
import type { DocumentSource, NodeFailure, NodeSaid, OutputForm } from "../../../operator/mod.ts";
import { nodeOptions, openSource, type Way, wayOptions } from "../../../operator/ways.ts";
import { CniCode, CniError } from "../../../shared/errors.ts";
import { limits } from "../../../shared/limits.ts";
import { paths } from "../../../shared/os/paths.ts";
import { defineCommand } from "../../../shared/terminal/command.ts";
import { exitStatus } from "../../../shared/terminal/exit-status.ts";
import { printableLines } from "../../../shared/terminal/printable.ts";
import type { TerminalIo } from "../../../shared/terminal/terminal-io.ts";
import type { AgentConfig } from "../../config/agent-config.ts";
import { nameOf } from "../../config/nodes-config.ts";
import { readConfig } from "../../config/read-config.ts";
import { diagnosisOf, doctorObject, doctorText, findingsOf } from "./doctor-text.ts";
import { type Diagnosis, examine } from "./examine.ts";
import { OwnNode } from "./own-node.ts";
import { repair as carryOut, type Repaired } from "./repair.ts";
import { parseRuntimeList, type RuntimeList } from "./runtime-list.ts";

const action = "look at the node";
/** The same status as for wrong arguments, since nothing is known about the node. */
const cannotLook = exitStatus.wrongArguments;

export const doctorCommand = defineCommand({
  action,
  about: `Compares what this node's sources say of its pods: leases, interfaces and the addresses on them, namespaces, the
agent, with Open vSwitch its ports and flows, with --runtime the container runtime. Looks at what a pod's network
needs besides: configuration, bridge or switch, forwarding, MTU, database, rights, registry. Of each disagreement it
says which source is believed, why, and what to do. Changes nothing without --repair. Pods may come and go meanwhile:
a disagreement is told only when it stays. By --node, -A and the other ways it shows what agents find on their nodes.`,
  options: {
    runtime: {
      value: "FILE",
      of: "file",
      help: 'what the runtime has, from "crictl pods -o json", or attachments as for "pipette ipam gc" ("-": standard input)',
    },
    repair: { help: "does what can be done, pods' attachments by way of the agent; then looks again" },
    once: { help: "looks only once, so that calls in flight can show as disagreements: for scripts that look again" },
    json: { help: "one JSON object, for programs: the same as -o json" },
    config: { value: "FILE", of: "file", help: `the agent's configuration (default ${paths.agentConfig})` },
    ...nodeOptions,
    ...outputOption,
    ...watchOption,
    ...wayOptions,
  },
  exits: {
    0: "all agree, apart from notes",
    1: "something disagrees, or is in the way of pods' network",
    2: "cannot look, or wrong arguments",
  },
  run: async ({ options }, io) => {
    try {
      const form = formOf(options.output, options.json);
      if (isElsewhere(options, io)) return await findingsElsewhere(options, form, io);
      const { watch, repair, runtime } = options;
      if (watch && (repair || runtime === "-")) throw wrong('"--watch" looks again and again', '"--repair" or "-"');
      const config = await readConfig(options.config ?? paths.agentConfig, io);
      if (config === undefined) return cannotLook;
      return await (watch ? watchHere(config, options, form, io) : examineAndTell(config, options, form, io));
    } catch (caught) {
      const { message, details } = CniError.from(caught, action);
      io.stderr(`${printableLines(message)}\n${details === "" ? "" : `${printableLines(details)}\n`}`);
      return cannotLook;
    }
  },
});

interface Given extends Way {
  readonly node: readonly string[];
  readonly "all-nodes": boolean;
  readonly runtime: string | undefined;
  readonly repair: boolean;
  readonly once: boolean;
  readonly config: string | undefined;
  readonly watch: boolean;
}

const wrong = (is: string, without: string): CniError =>
  new CniError(CniCode.invalidConfig, `Cannot ${action}: ${is}, wanted it without ${without}`);

/** What tells that agents are asked. A plugin of kubectl is about a cluster, but for what only a node has. */
const isElsewhere = (
  { node, "all-nodes": all, socket, kubeconfig, context, bundle, config }: Given,
  { isKubectl = false }: TerminalIo,
): boolean =>
  all ||
  node.length > 0 ||
  [socket, kubeconfig, context, bundle].some((one) => one !== undefined) ||
  (isKubectl && config === undefined);

/** What agents find on their own nodes. */
async function findingsElsewhere(given: Given, form: OutputForm, io: TerminalIo): Promise<number> {
  if (given.repair || given.once || given.runtime !== undefined || given.config !== undefined)
    throw new CniError(
      CniCode.invalidConfig,
      `Cannot ${action}: "--repair", "--once", "--runtime" and "--config" are for the node itself, wanted none of them with a way to an agent`,
    );
  const { chosenNodes } = await import("../../../operator/mod.ts");
  await using source = await openSource(given, given.socket === undefined, io);
  const nodes = await chosenNodes(source, given, new AbortController().signal);
  return await show({ source, nodes, ofSeveral: nodes.length > 1 || given["all-nodes"] }, given, form, io);
}

/** Again and again, without an agent. */
async function watchHere(config: AgentConfig, given: Given, form: OutputForm, io: TerminalIo): Promise<number> {
  const node = nameOf(config.nodes ?? {});
  const look = async () => findingsOf(node, await examine(config, await howTo(given, io)));
  await using source = new OwnNode(node, look);
  return await show({ source, nodes: [node], ofSeveral: false }, given, form, io);
}

interface Asked {
  readonly source: DocumentSource;
  readonly nodes: readonly string[];
  readonly ofSeveral: boolean;
}

async function show(
  { source, nodes, ofSeveral }: Asked,
  { watch }: Given,
  form: OutputForm,
  io: TerminalIo,
): Promise<number> {
  const { asTable, tables } = await import("../../../operator/mod.ts");
  const textOf = (said: readonly NodeSaid<"findings">[], failures: readonly NodeFailure[]): string => {
    const all = said.map(({ documents, ...one }) => ({ ...one, document: documents.findings }));
    if (form === "json" || form === "yaml") {
      const documents = all.map(({ node, document }) => doctorObject(node, diagnosisOf(document)));
      return nodesAsData(form, documents, failures, ofSeveral);
    }
    const [only] = all;
    if (only === undefined) return "";
    if (ofSeveral) return asTable(all, tables.findings, { wide: form === "wide", ofSeveral });
    return doctorText(diagnosisOf(only.document), undefined, form === "wide");
  };
  const print = (said: readonly NodeSaid<"findings">[], failures: readonly NodeFailure[]) => ({
    text: textOf(said, failures),
    status: said.every(({ documents }) => isWell(documents.findings)) ? exitStatus.done : exitStatus.failed,
  });
  const wanted = { kinds: ["findings"] as const };
  return await showNodes({ source, nodes, wanted, form, print }, { watch }, io, new AbortController().signal);
}

const isWell = ({ findings }: { readonly findings: readonly { readonly severity: string }[] }): boolean =>
  findings.every(({ severity }) => severity === "note");

async function examineAndTell(config: AgentConfig, given: Given, form: OutputForm, io: TerminalIo): Promise<number> {
  const how = await howTo(given, io);
  let diagnosis = await examine(config, how);
  const repaired = given.repair ? await carryOut(config, diagnosis.findings) : undefined;
  if (repaired !== undefined && repaired.length > 0) diagnosis = await examine(config, how);
  io.stdout(textOfOne(nameOf(config.nodes ?? {}), diagnosis, repaired, form));
  return isWell(diagnosis) ? exitStatus.done : exitStatus.failed;
}

const textOfOne = (
  node: string,
  diagnosis: Diagnosis,
  repaired: readonly Repaired[] | undefined,
  form: OutputForm,
): string =>
  form === "json" || form === "yaml"
    ? nodesAsData(form, [doctorObject(node, diagnosis, repaired)], [], false)
    : doctorText(diagnosis, repaired, form === "wide");

const howTo = async (
  { runtime, once }: Given,
  io: TerminalIo,
): Promise<{ readonly once: boolean; readonly runtime?: RuntimeList }> => ({
  once,
  ...(runtime === undefined ? {} : { runtime: await runtimeList(runtime, io) }),
});

async function runtimeList(file: string, io: TerminalIo): Promise<RuntimeList> {
  // Taken before it is read: pods that come meanwhile are younger than the list.
  const takenAtMs = file === "-" ? Date.now() : statSync(file).mtimeMs;
  const bytes =
    file === "-"
      ? await io.stdin()
      : await Bun.file(file)
          .slice(0, limits.messageBytes + 1)
          .bytes();
  if (bytes.length > limits.messageBytes)
    throw new Error(`Cannot read the list of the runtime: it is longer than ${limits.messageBytes} bytes`);
  return parseRuntimeList(new TextDecoder().decode(bytes), takenAtMs);
}
