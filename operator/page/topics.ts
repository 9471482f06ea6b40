import { isNodeKind, isNodeName, type NodeKind } from "../../shared/documents/mod.ts";

/** One document of one node, or the cluster as a whole. */
export type Topic =
  | { readonly t: "cluster" }
  | { readonly t: "node"; readonly node: string; readonly kind: NodeKind; readonly name?: string };

/** What a page follows: the same, also of all nodes. */
export type Wish =
  | Topic
  | {
      readonly t: "all";
      readonly kind: NodeKind;
    };

/** Of one page; it has seven kinds at most, and the tables of a pipeline that are open. */
export const maxWishes = 32;
/** Of what narrows a question down: a namespace and a pod. */
const maxNameChars = 600;

export const textOf = (topic: Topic): string =>
  topic.t === "cluster"
    ? "cluster"
    : `${topic.node}/${topic.kind}${topic.name === undefined ? "" : `/${encodeURIComponent(topic.name)}`}`;

/** @returns `undefined` for what is none */
export function parseWish(text: string): Wish | undefined {
  if (text === "cluster") return { t: "cluster" };
  const [node = "", kind = "", encoded, ...more] = text.split("/");
  if (!isNodeKind(kind) || more.length > 0) return undefined;
  if (node === "*") return encoded === undefined ? { t: "all", kind } : undefined;
  if (!isNodeName(node)) return undefined;
  if (encoded === undefined) return { t: "node", node, kind };
  const name = decoded(encoded);
  return name === undefined || name.length > maxNameChars ? undefined : { t: "node", node, kind, name };
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

export const covers = (wish: Wish, topic: Topic): boolean =>
  wish.t === "all"
    ? topic.t === "node" && topic.kind === wish.kind && topic.name === undefined
    : textOf(wish) === textOf(topic);
