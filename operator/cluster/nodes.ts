import { type DocumentNode, isNodeName, maxRows } from "../../shared/documents/mod.ts";
import {
  type ApiClient,
  type ApiObject,
  listIn,
  listPages,
  mapIn,
  mapsIn,
  type Resource,
  textIn,
} from "../../shared/kubernetes/mod.ts";

const nodes: Resource<DocumentNode> = { version: "v1", plural: "nodes", project: readNode };

function readNode(object: ApiObject): DocumentNode | undefined {
  const name = textIn(mapIn(object, "metadata"), "name");
  if (name === undefined || !isNodeName(name)) return undefined;
  const [spec, status] = [mapIn(object, "spec"), mapIn(object, "status")];
  const ready = mapsIn(status, "conditions").find((one) => textIn(one, "type") === "Ready");
  const system = textIn(mapIn(status, "nodeInfo"), "operatingSystem");
  const addresses = mapsIn(status, "addresses").filter((one) => textIn(one, "type") === "InternalIP");
  return {
    name,
    ...(ready === undefined ? {} : { ready: textIn(ready, "status") === "True" }),
    ...(system === undefined ? {} : { system }),
    addresses: addresses.flatMap((one) => textIn(one, "address") ?? []),
    subnets: listIn(spec, "podCIDRs").filter((cidr) => typeof cidr === "string"),
  };
}

/** By name. @throws {ApiError} */
export async function listClusterNodes(
  client: ApiClient,
  signal: AbortSignal,
): Promise<{ readonly nodes: readonly DocumentNode[]; readonly omitted: number }> {
  const found: DocumentNode[] = [];
  let omitted = 0;
  for await (const { items } of listPages(client, nodes, {}, signal))
    for (const item of items) {
      const node = nodes.project(item);
      if (node === undefined) continue;
      if (found.length < maxRows) found.push(node);
      else omitted++;
    }
  return { nodes: found.sort((a, b) => (a.name < b.name ? -1 : 1)), omitted };
}
