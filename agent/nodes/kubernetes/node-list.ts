import type { ListedNode } from "../node-registry.ts";
import { type ApiClient, ApiRefusal } from "./api-client.ts";
import { listIn, mapIn, nodeOf } from "./node-object.ts";

/** Nodes are large: each page is read, and what nobody needs is forgotten, before the next one comes. */
const pageNodes = 100;
/** Of one list: a page that is too old to go on from begins it anew. */
const attempts = 3;
const mostPages = 1000;

export interface NodeList {
  /** The oldest first: nobody but the API server says when a Node was made. */
  readonly nodes: ReadonlyMap<string, ListedNode>;
  /** Where a watch goes on. */
  readonly resourceVersion: string;
}

/** All Nodes as of one state of the cluster. @throws {ApiRefusal | Error} */
export async function listNodes(api: ApiClient): Promise<NodeList> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await readPages(api);
    } catch (caught) {
      if (!isGone(caught) || attempt === attempts) throw caught;
    }
  }
}

async function readPages(api: ApiClient): Promise<NodeList> {
  const found = new Map<string, { readonly node: ListedNode; readonly created: string }>();
  let from = "";
  for (let page = 0; page < mostPages; page++) {
    const query = new URLSearchParams({ limit: String(pageNodes), ...(from === "" ? {} : { continue: from }) });
    const answer = await api.get(`/api/v1/nodes?${query}`);
    for (const item of listIn(answer, "items")) {
      const node = nodeOf(item);
      if (node !== undefined) found.set(node.name, { node, created: createdIn(item) });
    }
    const { resourceVersion, continue: next } = mapIn(answer, "metadata");
    if (typeof resourceVersion !== "string" || resourceVersion === "")
      throw new Error("the list of nodes has no resourceVersion");
    if (typeof next !== "string" || next === "") return { nodes: inOrder([...found.values()]), resourceVersion };
    from = next;
  }
  throw new Error(`the list of nodes has more than ${mostPages * pageNodes} entries`);
}

/** RFC 3339 in UTC with whole seconds: its order is that of the text. */
function createdIn(item: unknown): string {
  const { creationTimestamp } = mapIn(item, "metadata");
  return typeof creationTimestamp === "string" ? creationTimestamp : "";
}

function inOrder(found: { readonly node: ListedNode; readonly created: string }[]): ReadonlyMap<string, ListedNode> {
  found.sort((a, b) => (a.created < b.created ? -1 : a.created > b.created ? 1 : 0));
  return new Map(found.map(({ node }) => [node.name, node]));
}

/** What was asked for is too old: only a new list helps. */
export const isGone = (caught: unknown): boolean => caught instanceof ApiRefusal && caught.status === 410;
