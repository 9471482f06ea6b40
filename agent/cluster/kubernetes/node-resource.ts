import { type FieldTable, mapIn, objectMeta, type Resource, textIn } from "../../../shared/kubernetes/mod.ts";
import type { ClusterNode, ListedNode } from "../node-registry.ts";
import { sameNode } from "../node-text.ts";
import { nodeOf } from "./node-object.ts";

/** What is read of a Node (k8s.io/api/core/v1): not its images, which are most of it. */
const fields: FieldTable = {
  1: ["metadata", "message", objectMeta],
  2: ["spec", "message", { 1: ["podCIDR", "string"], 7: ["podCIDRs", "strings"] }],
  3: [
    "status",
    "message",
    {
      4: ["conditions", "messages", { 1: ["type", "string"], 2: ["status", "string"] }],
      5: ["addresses", "messages", { 1: ["type", "string"], 2: ["address", "string"] }],
    },
  ],
};

export interface KnownNode {
  readonly node: ListedNode;
  /** RFC 3339 in UTC with whole seconds: its order is that of the text. */
  readonly created: string;
}

export const nodes: Resource<KnownNode> = {
  version: "v1",
  plural: "nodes",
  fields,
  project: (object) => {
    const node = nodeOf(object);
    return node === undefined
      ? undefined
      : { node, created: textIn(mapIn(object, "metadata"), "creationTimestamp") ?? "" };
  },
  // Most changes of a Node are of its conditions, which no peer asks for.
  same: (a, b) => sameNode(plain(a.node), plain(b.node)),
};

/** The oldest first: nobody but the API server says when a Node was made. */
export function inOrder(found: Iterable<KnownNode>): ListedNode[] {
  const sorted = [...found].sort((a, b) => (a.created < b.created ? -1 : a.created > b.created ? 1 : 0));
  return sorted.map(({ node }) => node);
}

export const plain = ({ state: _, problem: __, ...node }: ListedNode): ClusterNode => node;
