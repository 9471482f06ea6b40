import type { NodeDocumentOf, NodeKind } from "../shared/documents/mod.ts";
import type { DocumentSource } from "./document-source.ts";

/** Documents of one node, all at once. @throws {CniError} as `DocumentSource.get` */
export async function documentsOfNode<K extends NodeKind>(
  source: DocumentSource,
  node: string,
  kinds: readonly K[],
  signal: AbortSignal,
): Promise<{ readonly [Each in K]: NodeDocumentOf<Each> }> {
  const read = async (kind: K) => {
    const answer = await source.get(node, { kind }, signal);
    if (answer.t === "document") return [kind, answer.document] as const;
    throw new Error("it says that nothing has changed, and nobody asked that");
  };
  return Object.fromEntries(await Promise.all(kinds.map(read))) as { readonly [Each in K]: NodeDocumentOf<Each> };
}
