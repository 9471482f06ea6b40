import type { Cluster, Labels, Namespace, NetworkPolicy, Pod } from "../../../shared/policy/mod.ts";

/** What was read of a cluster at one moment, or what it would be with other policies. */
export class ClusterView implements Cluster {
  readonly pods: readonly Pod[];
  readonly policies: readonly NetworkPolicy[];
  readonly namespaces: readonly Namespace[];
  readonly #labels: ReadonlyMap<string, Labels>;
  readonly #byNamespace: ReadonlyMap<string, readonly NetworkPolicy[]>;

  constructor(pods: readonly Pod[], namespaces: readonly Namespace[], policies: readonly NetworkPolicy[]) {
    this.pods = pods;
    this.policies = policies;
    this.namespaces = namespaces;
    this.#labels = new Map(namespaces.map(({ name, labels }) => [name, labels]));
    this.#byNamespace = Map.groupBy(policies, ({ namespace }) => namespace);
  }

  namespaceLabels(namespace: string): Labels | undefined {
    return this.#labels.get(namespace);
  }

  policiesIn(namespace: string): readonly NetworkPolicy[] {
    return this.#byNamespace.get(namespace) ?? [];
  }

  withPolicies(policies: readonly NetworkPolicy[]): ClusterView {
    return new ClusterView(this.pods, this.namespaces, policies);
  }
}
