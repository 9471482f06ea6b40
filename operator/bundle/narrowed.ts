import type { HistoryDocument, NodeDocumentOf, NodeKind } from "../../shared/documents/mod.ts";
import { formatIp, parseIp } from "../../shared/net/ip.ts";

const ofAddress = (document: object, name: string): readonly object[] =>
  (document as HistoryDocument).history.filter(({ address }) => address === canonical(name));

/** An address as documents have it. */
function canonical(name: string): string {
  const ip = parseIp(name);
  return ip === undefined ? name : formatIp(ip);
}

interface OfPod {
  readonly podNamespace?: string;
  readonly podName?: string;
}

/** What an agent would have answered to this name: of a bundle the whole document is there. */
export function narrowed<K extends NodeKind>(kind: K, document: NodeDocumentOf<K>, name: string): NodeDocumentOf<K> {
  if (name === "") return document;
  const isOf = ({ podNamespace, podName }: OfPod): boolean =>
    name.endsWith("/") ? `${podNamespace}/` === name : `${podNamespace}/${podName}` === name;
  if (kind === "history" && parseIp(name) !== undefined) return { ...document, history: ofAddress(document, name) };
  const list = { history: "history", pods: "pods", leases: "leases", calls: "calls", policies: "pods" }[kind as string];
  const all = document as unknown as Readonly<Record<string, readonly unknown[]>>;
  if (list !== undefined) return { ...document, [list]: (all[list] ?? []).filter((row) => isOf(row as OfPod)) };
  if (kind !== "services") return document;
  const isNamed = ({ key }: { readonly key: string }): boolean =>
    key === name || key.startsWith(`${name}:`) || key.startsWith(`${name}/`);
  return { ...document, services: (all["services"] ?? []).filter((row) => isNamed(row as { key: string })) };
}
