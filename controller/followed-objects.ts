import { type ClientTrust, clientTrusts, noTrust, trustConfigMap } from "../shared/access/mod.ts";
import { LogOnChange } from "../shared/async/log-on-change.ts";
import {
  type ApiClient,
  type Change,
  Informer,
  type InformerState,
  objectKey,
  type Resource,
} from "../shared/kubernetes/mod.ts";
import type { Logger } from "../shared/log.ts";
import {
  type Cluster,
  type Namespace,
  type NetworkPolicy,
  namespaces,
  networkPolicies,
  type Pod,
  pods,
} from "../shared/policy/mod.ts";
import { PolicyComputation } from "./policy/mod.ts";
import type { Inputs } from "./snapshot.ts";

export interface FollowHandlers {
  /** What is computed has changed. */
  changed(): void;
  /** Others may say who asks. */
  trustChanged(): void;
}

/** The cluster's NetworkPolicies, Pods and Namespaces as the API server has them, and what is computed of them. */
export class FollowedObjects implements AsyncDisposable {
  readonly computation = new PolicyComputation();
  /** Once the computation has all that the API server has. */
  readonly complete: Promise<void>;
  readonly #policies: Informer<NetworkPolicy>;
  readonly #pods: Informer<Pod>;
  readonly #namespaces: Informer<Namespace>;
  readonly #trust: Informer<ClientTrust>;
  readonly #changed: () => void;

  constructor(client: ApiClient, logger: Logger, { changed, trustChanged }: FollowHandlers) {
    const { computation } = this;
    this.#changed = changed;
    const follow = <T>(resource: Resource<T>, selection = {}): Informer<T> => {
      const informer = new Informer(client, resource, { logger, selection });
      const problem = new LogOnChange(logger);
      informer.subscribe({
        changed: () => undefined,
        stateChanged: (state) => logState(problem, resource.plural, state),
      });
      return informer;
    };
    this.#policies = follow(networkPolicies);
    this.#pods = follow(pods);
    this.#namespaces = follow(namespaces);
    const { namespace, name } = trustConfigMap;
    this.#trust = follow(clientTrusts, { namespace, fields: `metadata.name=${name}` });
    this.#feed(
      this.#namespaces,
      (object) => computation.putNamespace(object),
      (key) => computation.deleteNamespace(key),
    );
    this.#feed(
      this.#pods,
      (object) => computation.putPod(object),
      (key) => computation.deletePod(key),
    );
    this.#feed(
      this.#policies,
      (object) => computation.putPolicy(object),
      (key) => computation.deletePolicy(key),
    );
    this.#trust.subscribe({ changed: trustChanged });
    const all = [this.#namespaces, this.#pods, this.#policies];
    this.complete = Promise.all(all.map(({ synced }) => synced)).then(() => undefined);
    // Whoever stops before has no use for it.
    this.complete.catch(() => undefined);
  }

  /** What evaluating a question needs. */
  get cluster(): Cluster {
    return {
      namespaceLabels: (name) => this.#namespaces.objects.get(objectKey(name))?.labels,
      policiesIn: (namespace) =>
        [...this.#policies.objects.values()].filter((policy) => policy.namespace === namespace),
    };
  }

  /** What is computed from, for a process that comes after. */
  get inputs(): Inputs {
    return {
      namespaces: this.#namespaces.objects.values(),
      pods: this.#pods.objects.values(),
      policies: this.#policies.objects.values(),
    };
  }

  get trust(): ClientTrust {
    const { namespace, name } = trustConfigMap;
    return this.#trust.objects.get(objectKey(name, namespace)) ?? noTrust;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const all = [this.#policies, this.#pods, this.#namespaces, this.#trust];
    await Promise.all(all.map((informer) => informer[Symbol.asyncDispose]()));
  }

  #feed<T>(informer: Informer<T>, put: (object: T) => void, remove: (key: string) => void): void {
    informer.subscribe({
      changed: (changes: readonly Change<T>[]) => {
        for (const change of changes)
          if (change.t === "deleted") remove(change.key);
          else put(change.object);
        this.#changed();
      },
    });
  }
}

function logState(problem: LogOnChange, plural: string, state: InformerState): void {
  if (state.t === "failing") problem.log(`the ${plural} of the cluster cannot be followed`, state.error.message);
  else if (state.t === "watching") problem.clear();
}
