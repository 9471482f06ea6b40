/** Who asks, as the API server says it (authentication.k8s.io/v1 UserInfo). */
export interface User {
  readonly name: string;
  readonly uid: string;
  readonly groups: readonly string[];
  readonly extra: Readonly<Record<string, readonly string[]>>;
}

/** What somebody wants, as a SubjectAccessReview asks it (authorization.k8s.io/v1). */
export type Wish =
  | {
      readonly t: "resource";
      readonly verb: string;
      readonly group: string;
      readonly version: string;
      readonly resource: string;
      /** Absent: of all namespaces, or in none. */
      readonly namespace?: string;
      readonly subresource?: string;
      readonly name?: string;
    }
  | { readonly t: "path"; readonly verb: string; readonly path: string };

/** After "may not": `get pods/proxy in namespace "kube-system"`. */
export function wishText(wish: Wish): string {
  if (wish.t === "path") return `${wish.verb} ${wish.path}`;
  const { verb, resource, subresource, namespace } = wish;
  const within = namespace === undefined ? "" : ` in namespace "${namespace}"`;
  return `${verb} ${resource}${subresource === undefined ? "" : `/${subresource}`}${within}`;
}

/** Whose objects somebody may see, besides having the right to: a node's agent sees those of its own node. */
export type Reach =
  | { readonly t: "all nodes" }
  | { readonly t: "node"; readonly node: string }
  /** Of a pod that nobody knows (any more). */
  | { readonly t: "nothing" };
