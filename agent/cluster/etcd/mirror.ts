import { abortable, pause } from "../../../shared/async/abortable.ts";
import { Backoff } from "../../../shared/async/backoff.ts";
import { LiveValue } from "../../../shared/async/live-value.ts";
import { LogOnChange } from "../../../shared/async/log-on-change.ts";
import type { Logger } from "../../../shared/log.ts";
import { reasonOf } from "../../../shared/reason.ts";
import {
  type EtcdClient,
  EtcdError,
  endOf,
  etcdLimits,
  type KeyValue,
  keyOf,
  page,
  type ResponseHeader,
  textOf,
  type WatchResponse,
  watch,
} from "../../protocols/etcd/mod.ts";
import type { Followed } from "../node-registry.ts";
import type { RegistryHealth } from "../registry-health.ts";

export interface MirrorOptions<T> {
  readonly client: EtcdClient;
  readonly prefix: string;
  /** @param name the key without the prefix. `undefined` for what is to be left out */
  readonly read: (name: string, value: string) => T | undefined;
  readonly health?: RegistryHealth;
  readonly logger?: Logger | undefined;
  /** Other than that of `etcdLimits`. */
  readonly relistMs?: number;
}

/** A known key. */
interface Entry<T> {
  readonly modRevision: number;
  readonly value: T | undefined;
}

/**
 * All keys below a prefix in the order of their last changes, followed: a list at one revision, then a watch from the
 * next one on. The watch resumes where it was, at any member. Only if etcd has compacted its history, or is another
 * cluster than before, everything is listed again, and differences count as changes.
 */
export class Mirror<T> extends LiveValue<ReadonlyMap<string, T>> implements Followed<ReadonlyMap<string, T>> {
  readonly #options: MirrorOptions<T>;
  readonly #entries = new Map<string, Entry<T>>();
  readonly #stop = new AbortController();
  /** Disposed of, or without a client. */
  readonly #end: AbortSignal;
  readonly #ended: Promise<void>;
  /** Everything up to here is in the entries. */
  #revision = 0;
  #clusterId = "";
  /** Whether the watch cannot resume from there. */
  #listAnew = true;
  #publishing: ReturnType<typeof setTimeout> | undefined;
  readonly #problem: LogOnChange;

  constructor(options: MirrorOptions<T>) {
    super();
    this.#options = options;
    this.#problem = new LogOnChange(options.logger);
    this.#end = AbortSignal.any([this.#stop.signal, options.client.closed]);
    this.#ended = this.#run();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    clearTimeout(this.#publishing);
    await this.#ended;
  }

  get #following(): string {
    return `follow the keys below "${this.#options.prefix}"`;
  }

  async #run(): Promise<void> {
    const backoff = new Backoff({ firstMs: etcdLimits.retryFirstMs, longestMs: etcdLimits.retryMostMs, jitter: 1 });
    while (!this.#end.aborted) {
      const before = this.#revision;
      try {
        // A member that never answers must not delay the disposal.
        await abortable(this.#list(), this.#end);
        await this.#watch();
      } catch (caught) {
        this.#say(caught);
      }
      // As long as there is nothing new, the pauses grow.
      if (this.#revision > before) backoff.reset();
      await pause(backoff.next(), this.#end);
    }
  }

  /** Lists everything if necessary; otherwise only checks that the history is still the same. */
  async #list(): Promise<void> {
    const { client, prefix, logger } = this.#options;
    const { header } = await client.range(page(prefix, prefix, 1, 0));
    const { clusterId, revision } = headerOf(header);
    const sameHistory = clusterId === this.#clusterId && revision >= this.#revision;
    if (sameHistory && !this.#listAnew) return;
    if (!sameHistory && this.#revision > 0)
      logger?.warn("The registry is another one than before, or of an earlier time", { prefix, revision });
    const found = await listAll(client, prefix, revision);
    let changed = this.current === undefined;
    for (const key of this.#entries.keys()) {
      if (!found.has(key)) changed = this.#entries.delete(key) || changed;
    }
    for (const [key, kv] of found) {
      if (sameHistory && this.#entries.get(key)?.modRevision === kv.modRevision) continue;
      this.#set(key, kv.modRevision, textOf(kv));
      changed = true;
    }
    this.#revision = revision;
    this.#clusterId = clusterId;
    this.#listAnew = false;
    if (changed) this.#publish();
  }

  async #watch(): Promise<void> {
    const { client, prefix, relistMs = etcdLimits.relistMs } = this.#options;
    const { endpoint } = client;
    const request = { key: prefix, rangeEnd: endOf(prefix), startRevision: this.#revision + 1 };
    const timeoutMs = relistMs * (1 + Math.random() / 2);
    try {
      await watch({ endpoint, request, signal: this.#end, timeoutMs, onResponse: (response) => this.#take(response) });
      this.#listAnew = true;
    } catch (caught) {
      client.moveOn(endpoint);
      throw caught;
    }
  }

  #take(response: WatchResponse): void {
    if (response.canceled) {
      // The requested revision was compacted, and no member has it.
      if (response.compactRevision > 0) this.#listAnew = true;
      const compacted = response.compactRevision > 0 ? "the revisions since are compacted" : "the watch was cancelled";
      const denied = response.cancelReason.includes("PermissionDenied");
      throw new EtcdError(denied ? "denied" : "uncertain", response.cancelReason || compacted);
    }
    const { clusterId } = headerOf(response.header);
    if (clusterId !== this.#clusterId) throw new EtcdError("uncertain", "the cluster is another one than before");
    this.#problem.clear();
    this.#options.health?.works(this.#following);
    // Events come in order; after a reconnection some versions of etcd send some again.
    const known = this.#revision;
    let changed = false;
    for (const { type, kv } of response.events) {
      if (kv === undefined || kv.modRevision <= known) continue;
      const key = keyOf(kv);
      if (type === 0) this.#set(key, kv.modRevision, textOf(kv));
      else this.#entries.delete(key);
      this.#revision = Math.max(this.#revision, kv.modRevision);
      changed = true;
    }
    if (changed) this.#publish();
  }

  #set(key: string, modRevision: number, text: string): void {
    const { prefix, read } = this.#options;
    this.#entries.set(key, { modRevision, value: read(key.slice(prefix.length), text) });
  }

  /** With a short delay, so that a burst of changes becomes a few maps and not thousands. */
  #publish(): void {
    if (this.#end.aborted) return;
    this.#publishing ??= setTimeout(() => {
      this.#publishing = undefined;
      const map = new Map<string, T>();
      for (const [key, { value }] of [...this.#entries].sort(([, a], [, b]) => a.modRevision - b.modRevision)) {
        if (value !== undefined) map.set(key.slice(this.#options.prefix.length), value);
      }
      this.set(map);
    }, etcdLimits.publishMs);
  }

  /** The attempts never end, so only a changed reason is logged. */
  #say(caught: unknown): void {
    if (this.#end.aborted) return;
    const reason = reasonOf(caught);
    this.#options.health?.failed(this.#following, reason);
    this.#problem.log("Cannot follow the registry for now, trying again", reason, { prefix: this.#options.prefix });
  }
}

/** Everything below a prefix as it was at one revision, in pages. */
async function listAll(client: EtcdClient, prefix: string, revision: number): Promise<ReadonlyMap<string, KeyValue>> {
  const found = new Map<string, KeyValue>();
  for (let from = prefix; ; ) {
    const { kvs, more } = await client.range(page(prefix, from, etcdLimits.pageKeys, revision));
    for (const kv of kvs) found.set(keyOf(kv), kv);
    const last = kvs.at(-1);
    if (!more || last === undefined) return found;
    from = `${keyOf(last)}\0`;
  }
}

function headerOf(header: ResponseHeader | undefined): ResponseHeader {
  if (header === undefined) throw new EtcdError("uncertain", "the answer has no header");
  return header;
}
