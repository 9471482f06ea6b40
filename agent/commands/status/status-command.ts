import { formOf, nodesAsData, outputOption, showNodes, watchOption } from "../../../operator/commands/mod.ts";
import type { NodeFailure, NodeSaid, OutputForm } from "../../../operator/mod.ts";
import { nodeOptions, openSource, type Way, wayOptions } from "../../../operator/ways.ts";
import { documentVersion } from "../../../shared/documents/mod.ts";
import { CniError } from "../../../shared/errors.ts";
import { paths } from "../../../shared/os/paths.ts";
import { defineCommand } from "../../../shared/terminal/command.ts";
import { exitStatus } from "../../../shared/terminal/exit-status.ts";
import { printableLines } from "../../../shared/terminal/printable.ts";
import type { TerminalIo } from "../../../shared/terminal/terminal-io.ts";
import { askAtSocket, databaseAtSocket, explain, isWell, type NodeReport, reportOf } from "./node-report.ts";
import { nodesText, nodeText } from "./status-text.ts";

export const statusCommand = defineCommand({
  action: "show the status",
  about:
    "Shows what the agent of this node says: networks, leases, interfaces, problems. Of several nodes a line each, and what is wrong.",
  options: {
    ...wayOptions,
    socket: { value: "PATH", of: "file", help: `where it listens (default ${paths.agentSocket})` },
    ...nodeOptions,
    ...outputOption,
    ...watchOption,
    json: { help: "everything, as one JSON object: the same as -o json" },
    readiness: { help: "for a probe: status 0 also where only new pods are refused, as by a pool that is full" },
  },
  exits: {
    0: "no problem; shortcomings of single pods or other nodes, and what is refused of the registry, are none",
    2: "another node cannot be asked, or wrong arguments",
    1: "problems, a registry that is lost, a configuration that is refused or not in place, errors in the lease database, an agent that is not ready, or none",
  },
  run: async ({ options }, io) => {
    const { socket = paths.agentSocket, readiness } = options;
    try {
      const form = formOf(options.output, options.json);
      if (isElsewhere(options, io) || options.watch) return await showDocuments(options, form, io);
      const report = await askAtSocket(socket, readiness);
      io.stdout(printed([{ report }], { form, ofSeveral: false }));
      return isWell(report, readiness) ? exitStatus.done : exitStatus.failed;
    } catch (caught) {
      if (caught instanceof CniError) {
        io.stderr(`${printableLines(caught.message)}\n`);
        return exitStatus.cannotTell;
      }
      io.stderr(`${explain(caught, socket)}\n`);
      return exitStatus.failed;
    }
  },
});

interface Given extends Way {
  readonly node: readonly string[];
  readonly "all-nodes": boolean;
  readonly watch: boolean;
  readonly readiness: boolean;
}

/** What tells that it is not about the agent at a socket. A plugin of kubectl is about a cluster. */
const isElsewhere = (
  { node, "all-nodes": all, socket, kubeconfig, context, bundle }: Given,
  { isKubectl = false }: TerminalIo,
): boolean =>
  all ||
  node.length > 0 ||
  [kubeconfig, context, bundle].some((one) => one !== undefined) ||
  (isKubectl && socket === undefined);

/** Of nodes that are not asked by their socket, or are watched: from their documents. */
async function showDocuments(options: Given, form: OutputForm, io: TerminalIo): Promise<number> {
  const { chosenNodes, SocketSource } = await import("../../../operator/mod.ts");
  const elsewhere = isElsewhere(options, io);
  const way = elsewhere ? options : { ...options, socket: options.socket ?? paths.agentSocket };
  await using source = await openSource(way, elsewhere, io);
  const { signal } = new AbortController();
  const nodes = await chosenNodes(source, options, signal);
  const ofSeveral = nodes.length > 1 || options["all-nodes"];
  const print = async (said: readonly NodeSaid<"node" | "pods" | "leases">[], failures: readonly NodeFailure[]) => {
    const all = await Promise.all(
      said.map(async ({ node, documents }) => {
        const isHere = source instanceof SocketSource && !options.readiness;
        const leases = documents.leases.leases.length;
        const database = isHere ? await databaseAtSocket(options.socket ?? paths.agentSocket, leases) : [];
        return { node, report: reportOf(documents.node, documents.pods, documents.leases, database) };
      }),
    );
    return {
      text: printed(all, { form, ofSeveral, failures }),
      status: all.every(({ report }) => isWell(report, options.readiness)) ? exitStatus.done : exitStatus.failed,
    };
  };
  const wanted = { kinds: ["node", "pods", "leases"] as const };
  return await showNodes({ source, nodes, wanted, form, print }, options, io, signal);
}

interface Form {
  readonly form: OutputForm;
  readonly ofSeveral: boolean;
  readonly failures?: readonly NodeFailure[];
}

function printed(
  all: readonly { readonly node?: string; readonly report: NodeReport }[],
  { form, ofSeveral, failures = [] }: Form,
): string {
  if (form === "json" || form === "yaml") {
    const head = { kind: "status", version: documentVersion };
    const documents = all.map(({ node, report }) => ({ ...head, ...(node === undefined ? {} : { node }), ...report }));
    return nodesAsData(form, documents, failures, ofSeveral);
  }
  if (all.length === 0) return "";
  const [only] = all;
  if (only !== undefined && !ofSeveral) return nodeText(only.report, Date.now(), form === "wide");
  const named = all.map(({ node = "", report }) => ({ node, report }));
  return nodesText(named, Date.now(), form === "wide");
}
