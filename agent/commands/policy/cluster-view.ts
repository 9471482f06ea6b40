import {
  type Cluster,
  isSubject,
  type Labels,
  type Namespace,
  type NetworkPolicy,
  namespaces,
  networkPolicies,
  type Pod,
  pods,
  selects,
} from "../../../shared/policy/mod.ts";
import type { AskedCluster } from "./ask-cluster.ts";

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

/** All pods, namespaces and policies. @throws {ApiError} */
export async function readCluster(cluster: AskedCluster): Promise<ClusterView> {
  const known = await cluster.list(pods);
  return new ClusterView(known, await cluster.list(namespaces), await cluster.list(networkPolicies));
}

/** Those that it isolates. @param all all pods of them, or those of its namespace */
export const podsOf = (policy: NetworkPolicy, all: readonly Pod[]): readonly Pod[] =>
  all.filter((pod) => pod.namespace === policy.namespace && isSubject(pod) && selects(policy.pods, pod.labels));
