import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { diagnosisOf, doctorText } from "../../../agent/commands/doctor/doctor-text.ts";
import { reportOf } from "../../../agent/commands/status/node-report.ts";
import { nodesText, nodeText } from "../../../agent/commands/status/status-text.ts";
import { nodeStatus, wanting } from "../../../agent/presence/node-status.ts";
import { BundleSource } from "../../../operator/bundle/bundle-source.ts";
import { narrowed } from "../../../operator/bundle/narrowed.ts";
import { leftOut, Redactor } from "../../../operator/bundle/redact.ts";
import { asTable, nodesAsData } from "../../../operator/output.ts";
import { flowsOfTable, nodesTable, type Table, tables } from "../../../operator/tables/tables.ts";
import { gather } from "../../../operator/why/gather.ts";
import { judge, verdictText } from "../../../operator/why/judge.ts";
import {
  bundleIndexSchema,
  isNodeKind,
  type NodeDocumentOf,
  type NodeKind,
  nodeKinds,
  readNodeDocument,
  readNodesDocument,
  readOne,
} from "../../../shared/documents/mod.ts";
import { printable } from "../../../shared/printable.ts";
import type { Target } from "../engine/target.ts";
import { jsonMutator } from "../mutate/json.ts";
import { jsonOf, refusable, textOf } from "./words.ts";

const words = [
  ...["kind", "version", "node", "omitted", "pods", "leases", "podNamespace", "podName", "containerId", "addresses"],
  ...["findings", "severity", "error", "trusts", "calls", "message", "phases", "tables", "flows", "peers", "problems"],
  ...["shop", "cart", "allocatedAt", "allocated", "free", "strips", "cells", "registryTroubles", "sinceMs", "ready"],
];
/** What commands a terminal, but for the ends of our own lines. */
const commanding = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;

/** @throws where what is printed holds what a terminal obeys */
function requirePrintable(text: string, what: string): void {
  const bad = text.split("\n").find((line) => commanding.test(line) || !line.isWellFormed());
  if (bad !== undefined) throw new Error(`${what} holds ${JSON.stringify(bad).slice(0, 200)}`);
}

/** In every form that a command has for it. */
function show(kind: NodeKind, document: NodeDocumentOf<NodeKind>): void {
  const printed = [{ node: document.node, atMs: 1_700_000_000_000, document }];
  const all = [tables[kind], ...(kind === "flows" ? [flowsOfTable] : [])] as unknown as Table<unknown, unknown>[];
  for (const table of all)
    for (const wide of [false, true]) requirePrintable(asTable(printed, table, { wide, ofSeveral: wide }), "a table");
  const yaml = nodesAsData("yaml", [document], [], false);
  requirePrintable(yaml, "YAML");
  requirePrintable(nodesAsData("json", [document], [], true), "JSON");
}

const nowMs = 1_700_000_000_000;

/** What else is made of it: commands of one kind, and a pod's question. */
function use(kind: NodeKind, document: NodeDocumentOf<NodeKind>): void {
  narrowed(kind, document, "shop/cart");
  const node = document.node;
  const head = { version: 1, node, omitted: 0 } as const;
  if (kind === "findings")
    requirePrintable(doctorText(diagnosisOf(document as NodeDocumentOf<"findings">), undefined, true), "a diagnosis");
  if (kind === "node") {
    const own = document as NodeDocumentOf<"node">;
    wanting(nodeStatus(own, { ...head, kind: "addresses", pools: [] }, nowMs));
    const report = reportOf(own, { ...head, kind: "pods", pods: [] }, { ...head, kind: "leases", leases: [] });
    requirePrintable(nodeText(report, nowMs, true), "a status");
    requirePrintable(nodesText([{ node, report }], nowMs, true), "statuses");
  }
  if (kind === "addresses") nodeStatus(plainNode, document as NodeDocumentOf<"addresses">, nowMs);
}

const plainNode: NodeDocumentOf<"node"> = {
  ...{ kind: "node", version: 1, node: "a", agentVersion: "1.0.0", pid: 1, startedAtMs: 1, state: "ready" },
  ...{ system: "linux", dataPath: "bridge", networks: ["pods"], callsInFlight: 0, departing: 0, cluster: "" },
  ...{ policies: "", services: "", servicesFault: "", problems: [], registryTroubles: [], configuration: [] },
  ...{ shortcomings: [], refusals: [], policyDifferences: [], serviceDifferences: [] },
};

/** A source whose one document is this one. */
async function ask(document: NodeDocumentOf<NodeKind>): Promise<void> {
  const source = {
    ...{ title: "it", isLive: true, nodes: async () => [document.node] },
    cluster: async () => Promise.reject(new Error("none")),
    get: async (_: string, { kind }: { readonly kind: NodeKind }) => {
      if (kind === document.kind) return { t: "document", revision: "1", atMs: 1, document } as never;
      if (kind === "node") return { t: "document", revision: "1", atMs: 1, document: { ...plainNode } } as never;
      throw new Error("there is none");
    },
    [Symbol.asyncDispose]: async () => undefined,
  };
  const facts = await gather({ open: async () => source }, { namespace: "shop", name: "cart" }, document.node, 1e12);
  // The command itself escapes it, line by line.
  requirePrintable(verdictText(judge(facts), facts).split("\n").map(printable).join("\n"), "a verdict");
}

export const documents: Target = {
  name: "documents",
  what: "documents of agents, as the operator's tool reads, prints and judges them",
  mutators: [jsonMutator(words)],
  dictionary: words,
  maxBytes: 16 * 1024,
  open: () => ({
    run: async (input) => {
      const value = jsonOf(input) as { readonly kind?: unknown } | null | undefined;
      const own = typeof value?.kind === "string" && isNodeKind(value.kind) ? value.kind : nodeKinds[0];
      for (const kind of new Set([own ?? "node", "pods" as const])) {
        const document = refusable(() => readNodeDocument(kind, undefined, input, "it"));
        if (document === undefined) continue;
        show(kind, document);
        use(kind, document);
        await ask(document);
      }
      const nodes = refusable(() => readNodesDocument(input, "it"));
      const printed = nodes === undefined ? [] : [{ node: "", atMs: 0, document: nodes }];
      requirePrintable(asTable(printed, nodesTable, { wide: true, ofSeveral: false }), "nodes");
      refusable(() => readOne(bundleIndexSchema, input, "the index"));
    },
  }),
};

export const bundleArchive: Target = {
  name: "bundle-archive",
  what: "support bundles from somebody else",
  mutators: [],
  dictionary: ["index.json", "nodes/a/pods.json", "ustar\u000000", "\u001f\u008b\b", "../x.json", "0000644"],
  maxBytes: 32 * 1024,
  open: () => {
    const directory = mkdtempSync(join(tmpdir(), "pt-fuzz-bundle-"));
    const file = join(directory, "b.tar");
    return {
      run: async (input) => {
        writeFileSync(file, input);
        const source = await BundleSource.open(file).catch(refused);
        if (source === undefined) return;
        await source.cluster().catch(refused);
        for (const node of (await source.nodes()).slice(0, 3))
          for (const kind of ["pods", "node"] as const) await source.get(node, { kind }).catch(refused);
      },
      close: () => rmSync(directory, { recursive: true, force: true }),
    };
  },
};

const refused = (caught: unknown): undefined => {
  refusable(() => {
    throw caught;
  });
  return undefined;
};

export const redaction: Target = {
  name: "redaction",
  what: "logs and configurations that a bundle takes",
  mutators: [],
  dictionary: [
    ...["token: ", "password=", "psk=", "-----BEGIN PRIVATE KEY-----\n", "-----END PRIVATE KEY-----", "Bearer "],
    ...["eyJhbGciOiJSUzI1NiJ9.", "https://root:", "@10.0.0.1", "CNI_ARGS=", '"token": "', "\n  - ", "# ", "|\n", '\\"'],
  ],
  maxBytes: 16 * 1024,
  open: () => ({
    run: (input) => {
      const text = textOf(input);
      const known = "swordfish-is-known";
      const middle = Math.floor(text.length / 2);
      const clean = new Redactor([known]).text(`${text.slice(0, middle)}${known}${text.slice(middle)}`);
      if (clean.includes(known)) throw new Error("A secret that is known is left");
      // What stands on a line of its own after all of it is a secret whatever came before it.
      const secret = "swordfish-by-its-key";
      if (new Redactor().text(`${text}\npassword: ${secret}\n`).includes(secret)) throw new Error("A password is left");
      const again = new Redactor([known]).text(clean);
      if (again.includes(leftOut) !== clean.includes(leftOut)) throw new Error("What was left out came back");
    },
  }),
};
