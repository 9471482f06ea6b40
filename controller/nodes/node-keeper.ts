import { ReconcileLoop } from "../../shared/async/reconcile-loop.ts";
import {
  type ApiClient,
  ApiError,
  type ApiObject,
  listPages,
  mapIn,
  mapsIn,
  textIn,
} from "../../shared/kubernetes/mod.ts";
import type { Logger } from "../../shared/log.ts";
import { controllerResource, leaseLabel, nodeResource, presenceTimes } from "../../shared/presence.ts";
import { version } from "../../shared/version.ts";
import { type NodeChanges, SilentNodes } from "./silent-nodes.ts";

export interface NodeKeeperOptions {
  readonly client: ApiClient;
  /** Of the Leases. */
  readonly namespace: string;
  readonly logger: Logger;
  /** Whether this one of several controllers does it. */
  isHolder(): boolean;
  /** Absent: the usual ones. */
  readonly times?: { readonly everyMs: number; readonly silentMs: number };
}

const usualTimes = {
  everyMs: presenceTimes.beatMs,
  silentMs: presenceTimes.beatMs * presenceTimes.missedBeats,
} as const;
const controllerName = "pipette-controller";
const [group = "", apiVersion = ""] = nodeResource.apiVersion.split("/");
const kinds = {
  objects: { group, version: apiVersion, plural: "pipettenodes" },
  leases: { group: "coordination.k8s.io", version: "v1", plural: "leases" },
  nodes: { version: "v1", plural: "nodes", metadataOnly: true },
} as const;

/**
 * Watches what agents write of their nodes: calls a node unknown whose agent is silent, takes away what is left of a node
 * that is gone, and sums up in the controllers' own object.
 */
export class NodeKeeper implements AsyncDisposable {
  readonly #options: NodeKeeperOptions;
  readonly #loop: ReconcileLoop;
  readonly #silent: SilentNodes;
  readonly #stopping = new AbortController();

  constructor(options: NodeKeeperOptions) {
    const { everyMs, silentMs } = options.times ?? usualTimes;
    this.#options = options;
    this.#silent = new SilentNodes(silentMs);
    this.#loop = new ReconcileLoop({
      ...{ what: "the state of nodes in the cluster", logger: options.logger, everyMs },
      retry: { firstMs: Math.min(5_000, everyMs), longestMs: everyMs },
      reconcile: async () => {
        // Also one that does not keep it looks, so that it knows who is silent when it has to.
        await this.#look();
        return undefined;
      },
    });
    this.#loop.trigger();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort();
    await this.#loop[Symbol.asyncDispose]();
  }

  /** @throws {ApiError} */
  async #look(): Promise<void> {
    const { namespace, isHolder } = this.#options;
    const [objects, leases, nodes] = await Promise.all([
      this.#list(kinds.objects),
      this.#list(kinds.leases, { namespace, labels: leaseLabel }),
      this.#list(kinds.nodes),
    ]);
    const names = new Set(nodes.map((node) => textIn(mapIn(node, "metadata") ?? {}, "name") ?? ""));
    const changes = this.#silent.judge({ objects, leases, nodes: names }, performance.now());
    if (!isHolder()) return;
    await this.#carryOut(changes);
    await this.#sumUp(changes);
  }

  async #list(
    kind: (typeof kinds)[keyof typeof kinds],
    selection: { readonly namespace?: string; readonly labels?: string } = {},
  ): Promise<readonly ApiObject[]> {
    const found: ApiObject[] = [];
    for await (const { items } of listPages(this.#options.client, kind, selection, this.#stopping.signal))
      found.push(...items);
    return found;
  }

  async #carryOut({ remove, removeLeases, silent }: NodeChanges): Promise<void> {
    const { client, namespace, logger } = this.#options;
    for (const { name, conditions } of silent) {
      const path = `${nodeResource.path}/${encodeURIComponent(name)}/status`;
      await unlessGone(
        client.patch({ path, action: `call PipetteNode "${name}" unknown` }, { status: { conditions } }),
      );
      logger.warn("a node's agent is silent", { node: name });
    }
    for (const name of remove) {
      const path = `${nodeResource.path}/${encodeURIComponent(name)}`;
      await unlessGone(client.delete({ path, action: `delete PipetteNode "${name}"` }));
      logger.info("took away the state of a node that is gone", { node: name });
    }
    for (const lease of removeLeases) {
      const path = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases/${encodeURIComponent(lease)}`;
      await unlessGone(client.delete({ path, action: `delete lease "${lease}"` }));
    }
  }

  async #sumUp({ nodes, silentNow }: NodeChanges): Promise<void> {
    const { client } = this.#options;
    const { path: all, kind, apiVersion } = controllerResource;
    const path = `${all}/${controllerName}`;
    const action = (verb: string): string => `${verb} PipetteController "${controllerName}"`;
    let before: ApiObject;
    try {
      before = await client.get({ path, action: action("get") });
    } catch (caught) {
      if (!(caught instanceof ApiError && caught.status === 404)) throw caught;
      before = await client.create(
        { path: all, action: action("create") },
        { apiVersion, kind, metadata: { name: controllerName } },
      );
    }
    const had = mapIn(before, "status") ?? {};
    const [ready] = mapsIn(had, "conditions");
    const now = `${new Date().toISOString().slice(0, 19)}Z`;
    const condition = {
      ...{ type: "Ready", status: "True", reason: "Watching", message: "a controller watches the nodes" },
      lastTransitionTime: textIn(ready ?? {}, "lastTransitionTime") ?? now,
    };
    const status = { version, nodes, silent: silentNow, conditions: [condition] };
    if (Bun.deepEquals(status, had)) return;
    await client.patch({ path: `${path}/status`, action: action("write the status of") }, { status });
  }
}

async function unlessGone(work: Promise<unknown>): Promise<void> {
  try {
    await work;
  } catch (caught) {
    if (!(caught instanceof ApiError && caught.status === 404)) throw caught;
  }
}
