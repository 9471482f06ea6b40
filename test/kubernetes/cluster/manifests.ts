import { readFileSync } from "node:fs";
import { parseAllDocuments } from "yaml";

export interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  /** Of a ConfigMap. */
  readonly data?: Record<string, string>;
  /** Of a DaemonSet. */
  readonly spec?: { readonly template?: { readonly spec: { readonly nodeSelector: Record<string, string> } } };
}

/** Objects of a file of conf/kubernetes, as a user's `kubectl apply -f` sends them. */
export const manifests = (name: string): readonly Manifest[] => {
  const text = readFileSync(new URL(`../../../conf/kubernetes/${name}`, import.meta.url), "utf8");
  return parseAllDocuments(text, { version: "1.1" }).map((document) => document.toJS() as Manifest);
};
