import { ReconcileLoop } from "../../shared/async/reconcile-loop.ts";
import type { AddressesDocument, NodeDocument } from "../../shared/documents/mod.ts";
import { type ApiClient, ApiError, type ApiObject, mapIn, mapsIn, textIn } from "../../shared/kubernetes/mod.ts";
import type { Logger } from "../../shared/log.ts";
import { nodeLease, nodeResource, presenceTimes } from "../../shared/presence.ts";
import { type NodeStatus, nodeStatus, wanting } from "./node-status.ts";

export interface PresenceOptions {
  readonly node: string;
  /** Where the Lease lies. */
  readonly namespace: string;
  readonly client: ApiClient;
  readonly logger: Logger;
  /** What the agent says of itself now. */
  look(): Promise<{ readonly node: NodeDocument; readonly addresses: AddressesDocument }>;
  /** Told of what somebody has to act on; the same is told once. */
  tell?(reason: string, message: string): void;
  /** Absent: the usual ones. */
  readonly times?: { readonly beatMs: number; readonly contentMs: number };
}

/**
 * Tells the cluster of this node: that its agent is alive, by a Lease that is small and written often; and how it is, by
 * the status of a PipetteNode, which is written when it has changed, and at most once a minute.
 */
export class NodePresence implements AsyncDisposable {
  readonly #options: PresenceOptions;
  readonly #beat: ReconcileLoop;
  readonly #content: ReconcileLoop;

  constructor(options: PresenceOptions) {
    this.#options = options;
    const { logger, node } = options;
    const { beatMs, contentMs } = options.times ?? presenceTimes;
    this.#beat = new ReconcileLoop({
      ...{ what: `the Lease of node "${node}"`, logger, everyMs: beatMs },
      // An API server that comes back is not to hear from all nodes in the same second, again and again.
      retry: { firstMs: Math.min(1_000, beatMs), longestMs: beatMs, jitter: 0.5 },
      reconcile: async () => {
        await this.#renew();
        return undefined;
      },
    });
    // Nodes that began together do not write together for ever.
    const everyMs = Math.round(contentMs * (0.9 + 0.2 * Math.random()));
    this.#content = new ReconcileLoop({
      ...{ what: `the PipetteNode "${node}"`, logger, everyMs },
      retry: { firstMs: Math.min(5_000, contentMs), longestMs: contentMs },
      reconcile: async () => {
        await this.#write();
        return undefined;
      },
    });
    this.#beat.trigger();
    this.#content.trigger();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.#beat[Symbol.asyncDispose](), this.#content[Symbol.asyncDispose]()]);
  }

  /** @throws {ApiError} */
  async #renew(): Promise<void> {
    const { client, namespace, node, times } = this.#options;
    const name = nodeLease(node);
    const all = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`;
    const what = `lease "${name}" in namespace "${namespace}"`;
    const seconds = Math.ceil(((times ?? presenceTimes).beatMs * presenceTimes.missedBeats) / 1000);
    const spec = { holderIdentity: node, leaseDurationSeconds: seconds, renewTime: microTime() };
    // The writer is the only one, so that nothing of somebody else's is lost.
    try {
      await client.patch({ path: `${all}/${name}`, action: `renew ${what}` }, { spec });
    } catch (caught) {
      if (!isAbsent(caught)) throw caught;
      const metadata = { name, namespace, labels: { "pipette.io/node": "agent" } };
      await client.create(
        { path: all, action: `create ${what}` },
        { apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata, spec },
      );
    }
  }

  /** Reads first: a controller may have called the node silent meanwhile. @throws {ApiError | CniError} */
  async #write(): Promise<void> {
    const { client, node, look } = this.#options;
    const { node: document, addresses } = await look();
    const status = nodeStatus(document, addresses, Date.now());
    for (const { reason, message } of wanting(status)) this.#options.tell?.(reason, message);
    const path = `${nodeResource.path}/${node}`;
    const action = (verb: string): string => `${verb} PipetteNode "${node}"`;
    let before: ApiObject;
    try {
      before = await client.get({ path, action: action("get") });
    } catch (caught) {
      if (!isAbsent(caught)) throw caught;
      before = await client.create(
        { path: nodeResource.path, action: action("create") },
        { apiVersion: nodeResource.apiVersion, kind: nodeResource.kind, metadata: { name: node } },
      );
    }
    const next = withTimes(status, before, new Date().toISOString());
    if (Bun.deepEquals(next, mapIn(before, "status"))) return;
    await client.patch({ path: `${path}/status`, action: action("write the status of") }, { status: next });
  }
}

/** A condition keeps the time at which it became what it is. */
function withTimes(status: NodeStatus, before: ApiObject, now: string): object {
  const earlier = new Map(mapsIn(mapIn(before, "status") ?? {}, "conditions").map((one) => [textIn(one, "type"), one]));
  const conditions = status.conditions.map((one) => {
    const was = earlier.get(one.type);
    const since = was?.["status"] === one.status ? textIn(was, "lastTransitionTime") : undefined;
    return { ...one, lastTransitionTime: since ?? `${now.slice(0, 19)}Z` };
  });
  return { ...status, conditions };
}

const isAbsent = (caught: unknown): boolean => caught instanceof ApiError && caught.status === 404;

/** A `MicroTime` of Kubernetes has six digits. */
const microTime = (): string => new Date().toISOString().replace("Z", "000Z");
