import { LogOnChange } from "../../../shared/async/log-on-change.ts";
import { withTimeout } from "../../../shared/async/with-timeout.ts";
import type { Logger } from "../../../shared/log.ts";
import { reasonOf } from "../../../shared/reason.ts";
import {
  type EtcdClient,
  EtcdError,
  etcdLimits,
  etcdMethods,
  get,
  put,
  textOf,
  unchanged,
} from "../../protocols/etcd/mod.ts";
import type { ClusterNode } from "../node-registry.ts";
import type { RegistryHealth } from "../registry-health.ts";
import type { Keys } from "./keys.ts";
import { readNode } from "./records.ts";

const telling = "say that this node lives";

/**
 * Reports that a node is alive, by a key with a lease. The node's subnets do not depend on it, and renewing a lease
 * makes no revision, so watchers of the nodes are not woken.
 */
export class KeepAlive implements AsyncDisposable {
  readonly #client: EtcdClient;
  readonly #keys: Keys;
  readonly #self: ClusterNode;
  readonly #health: RegistryHealth;
  readonly #problem: LogOnChange;
  readonly #everyMs: number;
  #lease: number | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #running: Promise<void>;
  #closed = false;

  constructor(
    client: EtcdClient,
    keys: Keys,
    self: ClusterNode,
    health: RegistryHealth,
    logger?: Logger,
    everyMs: number = etcdLimits.keepAliveMs,
  ) {
    this.#client = client;
    this.#keys = keys;
    this.#self = self;
    this.#health = health;
    this.#problem = new LogOnChange(logger);
    this.#everyMs = everyMs;
    this.#running = this.#beat();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    await withTimeout(this.#running, etcdLimits.farewellMs, () => undefined);
    const id = this.#lease;
    this.#lease = undefined;
    // If the revocation is lost, the lease expires by itself.
    if (id !== undefined)
      await this.#client.call(etcdMethods.leaseRevoke, { id }, etcdLimits.farewellMs).catch(() => undefined);
  }

  async #beat(): Promise<void> {
    let nextMs = this.#everyMs;
    try {
      const alive = this.#lease !== undefined && (await this.#renew(this.#lease));
      if (!alive) await this.#begin();
      this.#problem.clear();
      this.#health.works(telling);
    } catch (caught) {
      // Soon, at another member, because a third of the lease has passed already.
      if (caught instanceof EtcdError && caught.passing) nextMs = Math.min(nextMs, etcdLimits.retryMostMs);
      this.#say(reasonOf(caught));
    }
    if (this.#closed || this.#client.closed.aborted) return;
    this.#timer = setTimeout(() => {
      this.#running = this.#beat();
    }, nextMs);
    // This timer alone must not keep a process alive.
    this.#timer.unref();
  }

  /** Whether lease and key both exist: a release deletes the key, and a new registration may have followed. */
  async #renew(id: number): Promise<boolean> {
    const { ttl } = await this.#client.call(etcdMethods.leaseKeepAlive, { id });
    const { found } = await this.#client.txn({ run: [get(this.#keys.aliveNode(this.#self.name))] });
    const kv = found[0]?.[0];
    if (ttl > 0 && kv !== undefined && textOf(kv) === this.#self.uid) return true;
    this.#lease = undefined;
    return false;
  }

  /** If the answer is lost, the lease expires by itself. */
  async #begin(): Promise<void> {
    const id = 1 + Math.floor(Math.random() * Number.MAX_SAFE_INTEGER);
    await this.#client.call(etcdMethods.leaseGrant, { ttl: etcdLimits.leaseSeconds, id });
    const { name, uid } = this.#self;
    const { found } = await this.#client.txn({ run: [get(this.#keys.node(name))] });
    const kv = found[0]?.[0];
    if (kv === undefined || readNode(name, textOf(kv)).uid !== uid)
      throw new EtcdError("refused", `node "${name}" is not registered any more`);
    const { succeeded } = await this.#client.txn({
      when: [unchanged(this.#keys.node(name), kv.modRevision)],
      run: [put(this.#keys.aliveNode(name), uid, id)],
    });
    if (!succeeded) throw new EtcdError("uncertain", `the record of node "${name}" has changed meanwhile`);
    this.#lease = id;
  }

  /** The attempts never end, so only a changed reason is logged. */
  #say(reason: string): void {
    if (this.#closed) return;
    this.#health.failed(telling, reason);
    const registry = this.#client.name;
    this.#problem.log("Cannot tell the registry that this node lives, trying again", reason, { registry });
  }
}
