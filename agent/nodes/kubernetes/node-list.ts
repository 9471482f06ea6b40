import type { ListedNode } from "../node-registry.ts";
import { type ApiClient, ApiRefusal } from "./api-client.ts";
import { listIn, mapIn, nodeOf } from "./node-object.ts";

/** Nodes are large: each page is read, and what nobody needs is forgotten, before the next one comes. */
const pageNodes = 100;
/** Of one list: a page that is too old to go on from begins it anew. */
const attempts = 3;
const mostPages = 1000;

export interface NodeList {
  readonly nodes: Map<string, ListedNode>;
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
  const nodes = new Map<string, ListedNode>();
  let from = "";
  for (let page = 0; page < mostPages; page++) {
    const query = new URLSearchParams({ limit: String(pageNodes), ...(from === "" ? {} : { continue: from }) });
    const answer = await api.get(`/api/v1/nodes?${query}`);
    for (const item of listIn(answer, "items")) {
      const node = nodeOf(item);
      if (node !== undefined) nodes.set(node.name, node);
    }
    const { resourceVersion, continue: next } = mapIn(answer, "metadata");
    if (typeof resourceVersion !== "string" || resourceVersion === "")
      throw new Error("the list of nodes has no resourceVersion");
    if (typeof next !== "string" || next === "") return { nodes, resourceVersion };
    from = next;
  }
  throw new Error(`the list of nodes has more than ${mostPages * pageNodes} entries`);
}

/** What was asked for is too old: only a new list helps. */
export const isGone = (caught: unknown): boolean => caught instanceof ApiRefusal && caught.status === 410;
