import { CniCode, CniError } from "../errors.ts";
import { printable } from "../printable.ts";
import { reasonOf } from "../reason.ts";
import { parseJson } from "../schema/json.ts";
import { type Schema, validate } from "../schema/mod.ts";
import type { NodesDocument } from "./cluster-documents.ts";
import { clusterDocuments, type NodeDocumentOf, type NodeKind, nodeDocuments } from "./kinds.ts";
import { type NodeTrace, nodeTraceSchema } from "./trace-documents.ts";

/** One document: the largest message of an agent. */
export const maxDocumentBytes = 4 * 1024 * 1024;

/**
 * Reads what an agent, a server or a file says. It may be anything: its size, depth, counts and texts are bounded, and
 * the node that it names has to be the one that was asked.
 * @param from who said so, for the message: `node "a"`
 * @throws {CniError} 6
 */
export function readNodeDocument<K extends NodeKind>(
  kind: K,
  node: string | undefined,
  bytes: Uint8Array,
  from: string,
): NodeDocumentOf<K> {
  const schema = nodeDocuments[kind].schema as Schema as Schema<NodeDocumentOf<K>>;
  const document = readOne(schema, bytes, `the ${kind} of ${from}`);
  if (node !== undefined && document.node !== node)
    throw refused(`the ${kind} of ${from}`, `it is about node "${printable(document.node)}"`, `one about "${node}"`);
  return document;
}

/** @throws {CniError} 6 */
export const readNodesDocument = (bytes: Uint8Array, from: string): NodesDocument =>
  readOne<NodesDocument>(clusterDocuments.nodes.schema, bytes, `the nodes of ${from}`);

/** @param node that was asked @throws {CniError} 6 */
export function readNodeTrace(node: string, bytes: Uint8Array, from: string): NodeTrace {
  const trace = readOne<NodeTrace>(nodeTraceSchema, bytes, `the trace of ${from}`);
  if (trace.node === node) return trace;
  throw refused(`the trace of ${from}`, `it is about node "${printable(trace.node)}"`, `one about "${node}"`);
}

/** @param what for the message @throws {CniError} 6 */
export function readOne<T>(schema: Schema<T>, bytes: Uint8Array, what: string, maxBytes = maxDocumentBytes): T {
  if (bytes.length > maxBytes) throw refused(what, `it has ${bytes.length} bytes`, `at most ${maxBytes}`);
  let value: unknown;
  try {
    value = parseJson(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch (caught) {
    throw refused(what, `it is no JSON (${printable(reasonOf(caught)).slice(0, 120)})`, "a document");
  }
  const read = validate(schema, value, { unknownKeys: "ignored", maxIssues: 1 });
  if (read.t === "ok") return read.value;
  throw new CniError(CniCode.decode, `Cannot read ${what}: ${printable(read.issues[0]?.text ?? "it is wrong")}`);
}

const refused = (what: string, is: string, wanted: string): CniError =>
  new CniError(CniCode.decode, `Cannot read ${what}: ${is}, wanted ${wanted}`);
