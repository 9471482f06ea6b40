import { LogOnChange } from "../../shared/async/log-on-change.ts";
import {
  type ApiClient,
  type Change,
  Informer,
  type InformerState,
  type InformerTimes,
  mapIn,
  objectMeta,
  type Resource,
  textIn,
} from "../../shared/kubernetes/mod.ts";
import type { Logger } from "../../shared/log.ts";
import type { ServicePort } from "../datapath/services.ts";
import type { HealthCheck, ServiceProblem, ThisNode } from "./decide.ts";
import { type EndpointSlice, endpointSlices, proxiedSlices } from "./endpoint-slice.ts";
import { proxiedServices, type Service, services } from "./service-object.ts";
import type { ServiceChanges, ServiceReference, ServiceSource } from "./service-source.ts";
import { ServiceStore } from "./service-store.ts";

/** Times of changes that wait for being in force: kube-proxy keeps as many as come. */
const maxTriggers = 10_000;

export interface ClusterServicesOptions {
  /** Ends with the source. */
  readonly client: ApiClient;
  /** This node, as Kubernetes calls it. */
  readonly node: string;
  readonly logger: Logger;
  readonly times?: InformerTimes;
}

const nodes: Resource<ThisNode> = {
  version: "v1",
  plural: "nodes",
  fields: { 1: ["metadata", "message", objectMeta] },
  project: (object) => {
    const zone = textIn(mapIn(mapIn(object, "metadata"), "labels"), "topology.kubernetes.io/zone");
    return zone === undefined ? {} : { zone };
  },
  same: (a, b) => a.zone === b.zone,
};

/**
 * Services as the API server tells them. None are known before Services and EndpointSlices have both been listed, and
 * the node's own zone has been asked for: half of it would take endpoints away. While the server is away what is known
 * stays; nothing of it is kept on disk, since data paths keep what is in force without an agent.
 */
export class ClusterServices implements ServiceSource {
  readonly #store = new ServiceStore();
  readonly #informers: readonly AsyncDisposable[];
  readonly #client: ApiClient;
  readonly #listeners = new Set<() => void>();
  readonly #failing = new Map<string, string>();
  readonly #awaited = new Set(["services", "endpointslices", "nodes"]);
  readonly #problem: LogOnChange;
  readonly #changes = { services: 0, endpoints: 0 };
  /** What changed before has been in force, or nobody's. */
  readonly #startedAtMs = Date.now();
  #triggers: number[] = [];

  constructor({ client, node, logger, times }: ClusterServicesOptions) {
    this.#client = client;
    this.#problem = new LogOnChange(logger);
    const follow = <T>(resource: Resource<T>, selection: object, take: (change: Change<T>) => void): Informer<T> => {
      const informer = new Informer(client, resource, { logger, selection, ...(times === undefined ? {} : { times }) });
      informer.subscribe({
        changed: (changes) => {
          for (const change of changes) take(change);
          this.#tell();
        },
        listed: () => this.#listed(resource.plural),
        stateChanged: (state) => this.#stateChanged(resource.plural, state),
      });
      return informer;
    };
    this.#informers = [
      follow(services, { labels: proxiedServices }, (change) => this.#takeService(change)),
      follow(endpointSlices(node), { labels: proxiedSlices }, (change) => this.#takeSlice(change)),
      follow(nodes, { fields: `metadata.name=${node}` }, (change) =>
        this.#store.setNode(change.t === "deleted" ? {} : change.object),
      ),
    ];
  }

  get current(): ReadonlyMap<string, ServicePort> | undefined {
    return this.#awaited.size > 0 ? undefined : this.#store.wanted;
  }

  get healthChecks(): ReadonlyMap<string, HealthCheck> {
    return this.#awaited.size > 0 ? new Map() : this.#store.healthChecks;
  }

  get changes(): ServiceChanges {
    return { ...this.#changes };
  }

  takeTriggers(): readonly number[] {
    return this.#triggers.splice(0);
  }

  get problems(): ReadonlyMap<string, readonly ServiceProblem[]> {
    return this.#store.problems;
  }

  referenceOf(service: string): ServiceReference | undefined {
    return this.#store.referenceOf(service);
  }

  get fault(): string | undefined {
    return [...this.#failing.values()].at(0);
  }

  subscribe(changed: () => void): Disposable {
    const own = (): void => changed();
    this.#listeners.add(own);
    if (this.#awaited.size === 0) queueMicrotask(own);
    return { [Symbol.dispose]: () => void this.#listeners.delete(own) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#informers.map((informer) => informer[Symbol.asyncDispose]()));
    await this.#client[Symbol.asyncDispose]();
  }

  #takeService(change: Change<Service>): void {
    this.#changes.services++;
    if (change.t === "deleted") this.#store.deleteService(change.old);
    else this.#store.putService(change.object);
  }

  #takeSlice(change: Change<EndpointSlice>): void {
    this.#changes.endpoints++;
    // Another controller's slice may be given to another service.
    if (change.t !== "added") this.#store.deleteSlice(change.old);
    if (change.t === "deleted") return;
    this.#store.putSlice(change.object);
    const { triggeredAtMs } = change.object;
    const isNew = triggeredAtMs !== undefined && triggeredAtMs > this.#startedAtMs;
    if (isNew && this.#triggers.length < maxTriggers) this.#triggers.push(triggeredAtMs);
  }

  #listed(plural: string): void {
    if (this.#awaited.delete(plural)) this.#tell();
  }

  #stateChanged(plural: string, state: InformerState): void {
    if (state.t === "watching") {
      this.#failing.delete(plural);
      if (this.#failing.size === 0) this.#problem.clear();
    }
    if (state.t !== "failing") return;
    this.#failing.set(plural, state.error.message);
    this.#problem.log("services of Kubernetes cannot be followed, and those in force stay", state.error.message);
    // Without a zone hints do not count: that is no reason to have no services.
    if (plural === "nodes") this.#listed(plural);
  }

  #tell(): void {
    if (this.#awaited.size > 0) return;
    for (const listener of this.#listeners) listener();
  }
}
