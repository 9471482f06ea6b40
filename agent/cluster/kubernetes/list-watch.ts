import { LiveValue } from "../../../shared/async/live-value.ts";
import { LogOnChange } from "../../../shared/async/log-on-change.ts";
import {
  type ApiClient,
  type Change,
  Informer,
  type InformerState,
  type InformerTimes,
  isGone,
  listPages,
} from "../../../shared/kubernetes/mod.ts";
import type { Logger } from "../../../shared/log.ts";
import type { ClusterNode, Followed, ListedNode } from "../node-registry.ts";
import type { RegistryHealth } from "../registry-health.ts";
import { inOrder, type KnownNode, nodes, plain } from "./node-resource.ts";

const following = "follow the nodes";

/** All Nodes, followed by an informer: a new map with every change that matters to peers. */
export class NodeWatch implements Followed<ReadonlyMap<string, ClusterNode>> {
  readonly #health: RegistryHealth;
  readonly #value = new LiveValue<ReadonlyMap<string, ClusterNode>>();
  readonly #informer: Informer<KnownNode>;
  readonly #problem: LogOnChange;

  constructor(client: ApiClient, logger: Logger, times: InformerTimes, health: RegistryHealth) {
    this.#health = health;
    this.#problem = new LogOnChange(logger);
    this.#informer = new Informer(client, nodes, { logger, times, pageSize: pageNodes });
    this.#informer.subscribe({
      changed: (changes) => this.#take(changes),
      listed: () => this.#publishAll(),
      stateChanged: (state) => this.#say(state),
    });
  }

  get current(): ReadonlyMap<string, ClusterNode> | undefined {
    return this.#value.current;
  }

  subscribe(listener: (value: ReadonlyMap<string, ClusterNode>) => void): Disposable {
    return this.#value.subscribe(listener);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#informer[Symbol.asyncDispose]();
  }

  #take(changes: readonly Change<KnownNode>[]): void {
    // A list arrives page by page and is published as a whole.
    if (this.#informer.state.t !== "watching") return;
    const known = new Map(this.#value.current);
    for (const change of changes) {
      if (change.t === "deleted") known.delete(change.old.node.name);
      else known.set(change.object.node.name, plain(change.object.node));
    }
    this.#value.set(known);
  }

  #publishAll(): void {
    const all = inOrder(this.#informer.objects.values());
    this.#value.set(new Map(all.map((node) => [node.name, plain(node)])));
  }

  #say(state: InformerState): void {
    if (state.t === "watching") {
      this.#problem.clear();
      this.#health.works(following);
    }
    if (state.t !== "failing") return;
    const error = state.error.message;
    this.#health.failed(following, error);
    this.#problem.log("the nodes of Kubernetes cannot be followed, and are asked for again", error);
  }
}

/** Nodes are large, so each page is reduced to what is needed before the next one is requested. */
export const pageNodes = 100;
/** Attempts of one list: when a page has expired the list begins again. */
const attempts = 3;

/** All Nodes in one state of the cluster, the oldest first. @throws {ApiError} */
export async function listNodes(client: ApiClient): Promise<readonly ListedNode[]> {
  for (let attempt = 1; ; attempt++) {
    const found = new Map<string, KnownNode>();
    try {
      for await (const { items } of listPages(client, nodes, {}, new AbortController().signal, pageNodes))
        for (const item of items) {
          const known = nodes.project(item);
          if (known !== undefined) found.set(known.node.name, known);
        }
      return inOrder(found.values());
    } catch (caught) {
      if (!isGone(caught) || attempt === attempts) throw caught;
    }
  }
}
