import { type ApiClient, isGone, listPages } from "../../../shared/kubernetes/mod.ts";
import type { ListedNode } from "../node-registry.ts";
import { inOrder, type KnownNode, nodes } from "./node-resource.ts";

/** Nodes are large: each page is read, and what nobody needs is forgotten, before the next one comes. */
export const pageNodes = 100;
/** Of one list: a page that is too old to go on from begins it anew. */
const attempts = 3;

/** All Nodes as of one state of the cluster, the oldest first. @throws {ApiError} */
export async function listNodes(client: ApiClient): Promise<readonly ListedNode[]> {
  for (let attempt = 1; ; attempt++) {
    const found = new Map<string, KnownNode>();
    try {
      for await (const { items } of listPages(client, nodes, {}, new AbortController().signal, pageNodes))
        for (const item of items) {
          const known = nodes.project(item);
          if (known !== undefined) found.set(known.node.name, known);
        }
      return inOrder(found.values());
    } catch (caught) {
      if (!isGone(caught) || attempt === attempts) throw caught;
    }
  }
}
