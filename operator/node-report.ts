import type { NodeDocumentOf, NodeKind } from "../shared/documents/mod.ts";
import type { DocumentSource } from "./document-source.ts";

/** Which documents make up what is shown of a node. */
export interface Wanted<K extends NodeKind> {
  readonly kinds: readonly K[];
  /** As `Question.name`: narrows each of them down. */
  readonly name?: string;
}

/** What one node says of that. */
export interface NodeSaid<K extends NodeKind> {
  readonly node: string;
  /** Of the latest of its documents, milliseconds since 1970. */
  readonly atMs: number;
  readonly documents: { readonly [Each in K]: NodeDocumentOf<Each> };
}

/** Documents of one node, all at once. @throws {CniError} as `DocumentSource.get` */
export async function askNode<K extends NodeKind>(
  source: DocumentSource,
  node: string,
  { kinds, ...name }: Wanted<K>,
  signal: AbortSignal,
): Promise<NodeSaid<K>> {
  const read = async (kind: K) => {
    const answer = await source.get(node, { kind, ...name }, signal);
    if (answer.t === "document") return [kind, answer] as const;
    throw new Error("it says that nothing has changed, and nobody asked that");
  };
  const asked = await Promise.allSettled(kinds.map(read));
  // The first of the kinds tells why, whichever failed first: the same fault is told in the same words.
  const failed = asked.find((one) => one.status === "rejected");
  if (failed !== undefined) throw failed.reason;
  return saidBy(node, new Map(asked.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []))));
}

/** @param answers one of each kind that is wanted */
export function saidBy<K extends NodeKind>(
  node: string,
  answers: ReadonlyMap<K, { readonly atMs: number; readonly document: unknown }>,
): NodeSaid<K> {
  const documents = Object.fromEntries([...answers].map(([kind, { document }]) => [kind, document]));
  return {
    node,
    atMs: Math.max(0, ...[...answers.values()].map(({ atMs }) => atMs)),
    documents: documents as NodeSaid<K>["documents"],
  };
}
