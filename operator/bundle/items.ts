import { nodeKinds } from "../../shared/documents/mod.ts";
import type { DocumentSource } from "../document-source.ts";
import type { Item } from "./collect.ts";
import { limits } from "./limits.ts";

/**
 * Every document of a node, as its agent makes it. An agent that does not say what it is says nothing else either, and
 * each document would take its time: the others wait for that one, and fail with it.
 */
export function documentItems(source: DocumentSource, node: string): readonly Item[] {
  let first: Promise<object> | undefined;
  const ask = async (kind: (typeof nodeKinds)[number], signal: AbortSignal): Promise<object> => {
    const answer = await source.get(node, { kind }, signal);
    if (answer.t === "document") return answer.document;
    throw new Error("it says that nothing has changed, and nobody asked that");
  };
  return nodeKinds.map((kind) => ({
    path: `nodes/${node}/${kind}.json`,
    node,
    withinMs: kind === "findings" ? limits.findingsMs : limits.itemMs,
    work: async (signal) => {
      first ??= ask("node", AbortSignal.timeout(limits.itemMs));
      const own = await first;
      return kind === "node" ? own : await ask(kind, signal);
    },
  }));
}

/** The cluster as a whole. */
export const clusterItems = (source: DocumentSource): readonly Item[] => [
  { path: "cluster/nodes.json", work: (signal) => source.cluster(signal) },
];
