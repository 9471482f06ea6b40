import { ReconcileLoop } from "../../shared/async/reconcile-loop.ts";
import { type ApiClient, ApiError, type ApiObject, mapIn, textIn } from "../../shared/kubernetes/mod.ts";
import type { Logger } from "../../shared/log.ts";

/** Which controller keeps what all nodes report. */
export type Holder =
  | { readonly t: "this one" }
  | { readonly t: "another"; readonly identity: string; readonly address: string }
  | { readonly t: "nobody known" };

export interface StatusLeaseOptions {
  readonly client: ApiClient;
  readonly namespace: string;
  readonly logger: Logger;
  /** Times of Kubernetes' own components, or shorter ones. */
  readonly durationS?: number;
  readonly everyMs?: number;
}

const name = "pipette-controller";
/** A holder that has written nothing for so long has lost it. */
const usualDurationS = 15;
/** How often the holder writes and the others look. */
const usualEveryMs = 5_000;
/** Somebody was there first: look again what is there now. */
const maxAttempts = 3;

const nobody: Holder = { t: "nobody known" };

/**
 * A Lease (coordination.k8s.io) that one of several controllers holds. It says where that one is reached. Others take it
 * once it has not changed for its duration by their own clocks, so that clocks need not agree.
 */
export class StatusLease implements AsyncDisposable {
  /** Told when another holds it. */
  onChanged: () => void = () => undefined;
  readonly #options: StatusLeaseOptions;
  readonly #durationS: number;
  readonly #loop: ReconcileLoop;
  /** `ADDRESS:PORT_RANDOM`: another process at the same place is another holder. */
  #identity: string | undefined;
  #holder: Holder = nobody;
  /** By our own clock, while this one holds it. */
  #heldUntilMs = 0;
  /** Since when it has been as it is. */
  #seen = { version: "", atMs: 0 };

  constructor(options: StatusLeaseOptions) {
    this.#options = options;
    this.#durationS = options.durationS ?? usualDurationS;
    this.#loop = new ReconcileLoop({
      what: `the Lease "${options.namespace}/${name}"`,
      logger: options.logger,
      everyMs: options.everyMs ?? usualEveryMs,
      reconcile: async () => {
        await this.#look();
        return undefined;
      },
    });
  }

  /** From now on this controller takes it where nobody has it. @param address where others reach it, with the port */
  stand(address: string): void {
    this.#identity = `${address}_${crypto.randomUUID().slice(0, 8)}`;
    this.#loop.trigger();
  }

  get holder(): Holder {
    return this.#holder.t === "this one" && performance.now() > this.#heldUntilMs ? nobody : this.#holder;
  }

  /** Leaves it to the others. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#loop[Symbol.asyncDispose]();
    if (this.holder.t !== "this one") return;
    this.#holder = nobody;
    await this.#read()
      .then((lease) => this.#write(lease, { holderIdentity: "", leaseDurationSeconds: 1, renewTime: now() }))
      .catch(() => undefined);
  }

  /** @throws {ApiError} */
  async #look(): Promise<void> {
    const own = this.#identity;
    if (own === undefined) return;
    for (let attempt = 1; ; attempt++) {
      const atMs = performance.now();
      const lease = await this.#read();
      const spec = mapIn(lease ?? {}, "spec");
      const identity = textIn(spec, "holderIdentity") ?? "";
      if (identity !== "" && identity !== own && this.#isHeld(lease, atMs)) {
        this.#become({ t: "another", identity, address: identity.slice(0, identity.lastIndexOf("_")) });
        return;
      }
      const transitions = Number(spec["leaseTransitions"] ?? 0);
      const since = identity === own ? spec["acquireTime"] : now();
      try {
        await this.#write(lease, {
          holderIdentity: own,
          leaseDurationSeconds: this.#durationS,
          acquireTime: since,
          renewTime: now(),
          leaseTransitions: identity === own ? transitions : transitions + 1,
        });
        this.#heldUntilMs = atMs + this.#durationS * 1000;
        this.#become({ t: "this one" });
        return;
      } catch (caught) {
        if (!(caught instanceof ApiError && caught.status === 409) || attempt === maxAttempts) throw caught;
      }
    }
  }

  #isHeld(lease: ApiObject | undefined, nowMs: number): boolean {
    const version = textIn(mapIn(lease ?? {}, "metadata"), "resourceVersion") ?? "";
    if (version !== this.#seen.version) this.#seen = { version, atMs: nowMs };
    const seconds = mapIn(lease ?? {}, "spec")["leaseDurationSeconds"];
    return nowMs - this.#seen.atMs < (typeof seconds === "number" ? seconds : this.#durationS) * 1000;
  }

  #become(holder: Holder): void {
    const before = this.#holder;
    this.#holder = holder;
    if (Bun.deepEquals(before, holder)) return;
    const { logger } = this.#options;
    if (holder.t === "this one") logger.info("keeps what all nodes report");
    else if (holder.t === "another") logger.info("another controller keeps what all nodes report", holder);
    this.onChanged();
  }

  async #read(): Promise<ApiObject | undefined> {
    try {
      return await this.#options.client.get({ path: `${this.#all}/${name}`, action: this.#action("read") });
    } catch (caught) {
      if (caught instanceof ApiError && caught.status === 404) return undefined;
      throw caught;
    }
  }

  /** @throws {ApiError} 409 where it is another one by now */
  async #write(before: ApiObject | undefined, spec: object): Promise<void> {
    const { client, namespace } = this.#options;
    const version = textIn(mapIn(before ?? {}, "metadata"), "resourceVersion");
    const lease = {
      kind: "Lease",
      apiVersion: "coordination.k8s.io/v1",
      metadata: { namespace, name, ...(version === undefined ? {} : { resourceVersion: version }) },
      spec,
    };
    if (before === undefined) await client.create({ path: this.#all, action: this.#action("create") }, lease);
    else await client.replace({ path: `${this.#all}/${name}`, action: this.#action("write") }, lease);
  }

  get #all(): string {
    return `/apis/coordination.k8s.io/v1/namespaces/${this.#options.namespace}/leases`;
  }

  #action(verb: string): string {
    return `${verb} lease "${name}" in namespace "${this.#options.namespace}"`;
  }
}

/** A `MicroTime` of Kubernetes has six digits. */
const now = (): string => new Date().toISOString().replace("Z", "000Z");
