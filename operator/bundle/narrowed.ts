import type { NodeDocumentOf, NodeKind } from "../../shared/documents/mod.ts";

interface OfPod {
  readonly podNamespace?: string;
  readonly podName?: string;
}

/** What an agent would have answered to this name: of a bundle the whole document is there. */
export function narrowed<K extends NodeKind>(kind: K, document: NodeDocumentOf<K>, name: string): NodeDocumentOf<K> {
  if (name === "") return document;
  const isOf = ({ podNamespace, podName }: OfPod): boolean =>
    name.endsWith("/") ? `${podNamespace}/` === name : `${podNamespace}/${podName}` === name;
  const list = { pods: "pods", leases: "leases", calls: "calls", policies: "pods" }[kind as string];
  const all = document as unknown as Readonly<Record<string, readonly unknown[]>>;
  if (list !== undefined) return { ...document, [list]: (all[list] ?? []).filter((row) => isOf(row as OfPod)) };
  if (kind !== "services") return document;
  const isNamed = ({ key }: { readonly key: string }): boolean =>
    key === name || key.startsWith(`${name}:`) || key.startsWith(`${name}/`);
  return { ...document, services: (all["services"] ?? []).filter((row) => isNamed(row as { key: string })) };
}
