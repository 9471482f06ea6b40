import { isNodeKind, type NodeKind, nodeKinds } from "../../shared/documents/mod.ts";
import { CniError } from "../../shared/errors.ts";
import { parseIp } from "../../shared/net/ip.ts";
import { defineCommand } from "../../shared/terminal/command.ts";
import { exitStatus } from "../../shared/terminal/exit-status.ts";
import { printableLines } from "../../shared/terminal/printable.ts";
import type { TerminalIo } from "../../shared/terminal/terminal-io.ts";
import { documentsOf, type NodeFailure } from "../ask-nodes.ts";
import type { DocumentSource, Question } from "../document-source.ts";
import { asData, asTable, formOf, listOf, type OutputForm, outputOption, type Printed } from "../output.ts";
import { flowsOfTable, nodesTable, type Table, tables } from "../tables/tables.ts";
import { nodeOptions, openSource, wayOptions } from "../ways.ts";
import { chosenNodes } from "./chosen-nodes.ts";
import { watchNodes } from "./watch.ts";

/** `node` is what `status` shows; here the nodes are asked as a cluster's. */
const kinds = ["nodes", ...nodeKinds] as const;

/** Whose name is `namespace/pod`. */
const ofPods: readonly string[] = ["pods", "leases", "history", "policies", "calls"];

export const getCommand = defineCommand({
  action: "show it",
  about: `Shows what nodes and the cluster have: pods with their interfaces, leases, addresses and who had them, services, policies,
flows, findings of the doctor, the last calls, the other nodes and whether their pods are reached. By the socket of this node's agent, by the API server, or from
a support bundle: the same command, and the same output.

NAME is NAMESPACE/NAME, or NAME with --namespace, of pods, leases, history, policies and calls; of history also an
address; NAMESPACE/NAME of services; of flows a table, whose flows are shown then.`,
  operands: [
    { name: "KIND", help: "of what", of: kinds },
    { name: "NAME", help: "only this one", optional: true },
  ],
  options: {
    namespace: { value: "NAME", short: "n", help: "only of this namespace" },
    ...outputOption,
    ...nodeOptions,
    watch: { short: "w", help: "shows it again whenever it changes, until it is interrupted" },
    ...wayOptions,
  },
  exits: {
    0: "done, also when there is nothing",
    1: "findings that are more than notes",
    2: "not everything could be told, or wrong arguments",
    3: "there is none of this name",
  },
  run: async ({ options, operands: [kind = "", name] }, io) => {
    const form = formOf(options.output);
    const action = `show the ${kind}`;
    const signal = new AbortController().signal;
    try {
      const elsewhere = options["all-nodes"] || options.node.length > 0;
      await using source = await openSource(options, elsewhere, io);
      if (!isNodeKind(kind)) return await showCluster(source, form, io, signal);
      const question: Question = { kind, ...nameOf(kind, name, options.namespace) };
      const nodes = await chosenNodes(source, options, signal);
      const asked: Asked = { source, question, nodes, form, ofSeveral: nodes.length > 1 || options["all-nodes"] };
      if (options.watch)
        return await watchNodes(asked, (printed, failures) => show(asked, printed, failures, io), io, signal);
      const { answers, failures } = await documentsOf(source, nodes, question, signal);
      return show(
        asked,
        answers.map(({ node, answer }) => ({ node, ...answer })),
        failures,
        io,
      );
    } catch (caught) {
      const { message, details } = CniError.from(caught, action);
      io.stderr(`${printableLines(message)}\n${details === "" ? "" : `${printableLines(details)}\n`}`);
      return exitStatus.cannotTell;
    }
  },
});

/** What is asked of whom, and how to print it. */
export interface Asked {
  readonly source: DocumentSource;
  readonly question: Question;
  readonly nodes: readonly string[];
  readonly form: OutputForm;
  /** Rows say of which node they are. */
  readonly ofSeveral: boolean;
}

function nameOf(kind: NodeKind, name: string | undefined, namespace: string | undefined): { readonly name?: string } {
  if (!ofPods.includes(kind) && kind !== "services") return name === undefined ? {} : { name };
  if (name === undefined) return namespace === undefined || kind === "services" ? {} : { name: `${namespace}/` };
  if (kind === "history" && parseIp(name) !== undefined) return { name };
  return { name: name.includes("/") ? name : `${namespace ?? "default"}/${name}` };
}

async function showCluster(
  source: DocumentSource,
  form: OutputForm,
  io: TerminalIo,
  signal: AbortSignal,
): Promise<number> {
  const document = await source.cluster(signal);
  if (form === "json" || form === "yaml") io.stdout(asData(form, document));
  else {
    const printed = [{ node: "", atMs: Date.now(), document }];
    io.stdout(asTable(printed, nodesTable, { wide: form === "wide", ofSeveral: false }));
  }
  return exitStatus.done;
}

/** @returns the exit status */
function show(
  { question, form, ofSeveral }: Asked,
  printed: readonly Printed<unknown>[],
  failures: readonly NodeFailure[],
  io: TerminalIo,
): number {
  const table = (question.kind === "flows" && question.name !== undefined
    ? flowsOfTable
    : tables[question.kind]) as unknown as Table<unknown, unknown>;
  const documents = printed.map(({ document }) => document);
  if (form === "json" || form === "yaml") {
    const [only] = documents;
    if (ofSeveral || failures.length > 0) io.stdout(asData(form, listOf(documents, failures)));
    else io.stdout(asData(form, only));
  } else if (printed.length > 0) io.stdout(asTable(printed, table, { wide: form === "wide", ofSeveral }));
  for (const { reason } of failures) io.stderr(`${printableLines(reason)}\n`);
  if (failures.length > 0) return exitStatus.cannotTell;
  const isNamed = question.name !== undefined && !question.name.endsWith("/") && question.kind !== "flows";
  if (isNamed && documents.every((document) => table.rowsOf(document).length === 0)) return exitStatus.notThere;
  return question.kind === "findings" && documents.some(hasFindings) ? exitStatus.failed : exitStatus.done;
}

const hasFindings = (document: unknown): boolean =>
  tables.findings
    .rowsOf(document as Parameters<typeof tables.findings.rowsOf>[0])
    .some(({ severity }) => severity !== "note");
