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

/** Objects per page. A page is processed before the next is requested, which bounds memory. */
export const pageObjects = 500;
/** A hundred times the size that Kubernetes supports; ends the list of a server that never reports the last page. */
const maxPages = 20_000;

export interface Page {
  readonly items: readonly ApiObject[];
  /** The version of the whole list, at which a watch begins. */
  readonly resourceVersion: string;
}

/**
 * All objects of one state of the cluster, page by page.
 * @throws {ApiError} with status 410 where that state has expired on the server
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
