import type { ApiClient } from "./api-client.ts";
import { type FieldTable, listMeta } from "./protobuf.ts";
import {
  type ApiObject,
  acceptOf,
  listIn,
  mapIn,
  pathOf,
  queryOf,
  type ResourceKind,
  type Selection,
  textOf,
} from "./resource.ts";

/** Each page is read, and what nobody keeps is forgotten, before the next one comes. */
export const pageObjects = 500;
/** A hundred times what Kubernetes is said to bear: a server that tells of no end ends here. */
const maxPages = 20_000;

export interface Page {
  readonly items: readonly ApiObject[];
  /** Of the whole list: where a watch goes on. */
  readonly resourceVersion: string;
}

/**
 * All objects of one state of the cluster, page by page.
 * @throws {ApiError} with status 410 where that state is too old to go on from
 */
export async function* listPages(
  client: ApiClient,
  resource: ResourceKind,
  selection: Selection,
  signal: AbortSignal,
  limit = pageObjects,
): AsyncGenerator<Page, void> {
  const action = `list ${textOf(resource, selection)}`;
  const accept = acceptOf(resource, true);
  const table = listTable(resource.fields);
  let from = "";
  for (let page = 0; page < maxPages; page++) {
    const query = queryOf(selection, { limit: String(limit), ...(from === "" ? {} : { continue: from }) });
    const answer = await client.get({ path: `${pathOf(resource, selection)}?${query}`, action, accept, signal }, table);
    const { resourceVersion, continue: next } = mapIn(answer, "metadata");
    if (typeof resourceVersion !== "string" || resourceVersion === "")
      throw new Error(`the list of ${resource.plural} has no resourceVersion`);
    yield { items: listIn(answer, "items") as readonly ApiObject[], resourceVersion };
    if (typeof next !== "string" || next === "") return;
    from = next;
  }
  throw new Error(`the list of ${resource.plural} has more than ${maxPages * limit} entries`);
}

const listTable = (item: FieldTable = {}): FieldTable => ({
  1: ["metadata", "message", listMeta],
  2: ["items", "messages", item],
});
