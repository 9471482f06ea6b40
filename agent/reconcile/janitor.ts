import { Backoff } from "../../shared/async/backoff.ts";
import { ReconcileLoop } from "../../shared/async/reconcile-loop.ts";
import { ownerFields, ownerKey } from "../../shared/cni/owner-key.ts";
import type { Owner } from "../../shared/cni/types.ts";
import { reasonOf } from "../../shared/reason.ts";
import type { AgentContext } from "./agent-context.ts";
import { DataPathRepair } from "./data-path-repair.ts";
import { endInterfaceLost, LostInterfaces, remakeableInterfaces, remakeInterface } from "./interface-lost.ts";
import { interfaceProbe, type LivenessProbe } from "./liveness-probes.ts";
import { finishPendingDetach, pendingDetaches } from "./pending-detach.ts";
import { giveBackStale, staleLeases } from "./stale-leases.ts";

export interface JanitorOptions {
  readonly intervalMs: number;
  /** How long after the agent's start a lease of an earlier boot is kept for its owner. */
  readonly staleGraceMs: number;
  /** How long an interface may be missing without a DEL before its addresses are released; absent: for ever. */
  readonly interfaceLostGraceMs?: number;
  /** Asked, beside the interfaces, before a lease is released. */
  readonly livenessProbes?: readonly LivenessProbe[];
}

interface Failure {
  readonly backoff: Backoff;
  times: number;
  /** On the monotonic clock: a stepped clock must not stop the janitor. */
  notBeforeMs: number;
}

/** What is to be done for an owner; answers whether there was anything. */
interface Work {
  readonly owner: Owner;
  readonly work: () => Promise<boolean>;
}

/** The longest pause after repeated failures. */
const longestPauseMs = 5 * 60_000;
/** Owners that are named in one line of the log. */
const maxInLog = 20;
/** Owners of one round, so that stopping never waits long; the next round continues. */
const maxPerRound = 256;

/**
 * Finishes what plugins could not: leases in `releasing`, pending detaches of delegated attachments, unclaimed leases
 * of an earlier boot, and leases whose interface has gone. It also recreates lost interfaces and repairs the data path.
 * It checks the store periodically, because plugins write there without asking the agent, and at once when it is poked.
 */
export class Janitor {
  readonly #context: AgentContext;
  readonly #options: JanitorOptions;
  readonly #probes: readonly LivenessProbe[];
  readonly #lost: LostInterfaces | undefined;
  readonly #repair: DataPathRepair;
  readonly #startedAtMs = performance.now();
  readonly #failures = new Map<string, Failure>();
  #loop: ReconcileLoop | undefined;
  /** When an ADD last found no address, on the monotonic clock, and whether a round has handled that yet. */
  #wantedAtMs = Number.NEGATIVE_INFINITY;
  #isWanted = false;
  #stopped = false;

  constructor(context: AgentContext, options: JanitorOptions) {
    this.#context = context;
    this.#options = options;
    // The data path may be created after the janitor.
    const interfaces = interfaceProbe({ list: () => context.dataPath.list() });
    this.#probes = [interfaces, ...(options.livenessProbes ?? [])];
    const { interfaceLostGraceMs } = options;
    if (interfaceLostGraceMs !== undefined) this.#lost = new LostInterfaces(this.#probes, interfaceLostGraceMs);
    this.#repair = new DataPathRepair(context, { intervalMs: options.intervalMs, longestMs: longestPauseMs });
  }

  start(): void {
    const { logger } = this.#context;
    const reconcile = async (): Promise<undefined> => void (await this.round());
    this.#loop = new ReconcileLoop({ what: "the node", reconcile, logger, everyMs: this.#options.intervalMs });
  }

  /** Starts a round now, or right after the running one. */
  poke(): void {
    this.#loop?.trigger();
  }

  /**
   * An ADD has found no address: addresses of lost interfaces are released without a grace. At most once per interval.
   */
  makeRoom(): void {
    const now = performance.now();
    if (now < this.#wantedAtMs + this.#options.intervalMs) return;
    this.#wantedAtMs = now;
    this.#isWanted = true;
    this.poke();
  }

  /** Begins no more rounds, and waits for the running one. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#loop?.[Symbol.asyncDispose]();
    await this.#repair.stop();
  }

  /** Repairs only the data path, at once, because its environment may have changed. Never throws. */
  async repair(): Promise<void> {
    if (!this.#stopped) await this.#repair.run();
  }

  /** How many attachments have left and are not detached yet. */
  pendingDetaches(): number {
    return pendingDetaches(this.#context).length;
  }

  /**
   * One round over everything that may be due. Never throws: a failure is logged and tried again after growing pauses.
   */
  async round(): Promise<void> {
    const context = this.#context;
    await this.#repair.run();
    try {
      for (const { owner, work } of this.#due(this.#works()).slice(0, maxPerRound)) {
        if (this.#stopped) return;
        await this.#attempt(owner, work);
      }
      const stale = await this.#stale();
      this.#report("leases of an earlier boot are given back: no source knows their owners", stale);
      for (const owner of stale) await this.#attempt(owner, () => giveBackStale(context, owner));
      const wanted = this.#isWanted;
      this.#isWanted = false;
      const lost = (await this.#lost?.due(context, wanted)) ?? [];
      this.#report(
        "leases whose interface has gone without a DEL are given back",
        lost.map(({ owner }) => owner),
      );
      for (const each of lost) await this.#attempt(each.owner, () => endInterfaceLost(context, each));
    } catch (caught) {
      context.logger.error("the janitor could not look at the store", { error: reasonOf(caught) });
    }
  }

  #works(): readonly Work[] {
    const context = this.#context;
    return [
      ...pendingDetaches(context).map((owner) => ({ owner, work: () => finishPendingDetach(context, owner) })),
      ...remakeableInterfaces(context).map((each) => ({
        owner: each.owner,
        work: () => remakeInterface(context, each),
      })),
    ];
  }

  #due(works: readonly Work[]): readonly Work[] {
    const known = new Set(works.map(({ owner }) => ownerKey(owner)));
    for (const key of this.#failures.keys()) if (!known.has(key)) this.#failures.delete(key);
    const now = performance.now();
    return works.filter(({ owner }) => (this.#failures.get(ownerKey(owner))?.notBeforeMs ?? 0) <= now);
  }

  async #attempt(owner: Owner, work: () => Promise<boolean>): Promise<void> {
    const { logger } = this.#context;
    const key = ownerKey(owner);
    try {
      if (await work()) logger.info("tidied up", ownerFields(owner));
      this.#failures.delete(key);
    } catch (caught) {
      const failure = this.#failures.get(key) ?? this.#newFailure();
      this.#failures.set(key, failure);
      const pauseMs = failure.backoff.next();
      failure.times++;
      failure.notBeforeMs = performance.now() + pauseMs;
      logger.error("tidying up failed and is tried again", {
        ...ownerFields(owner),
        error: reasonOf(caught),
        times: failure.times,
        pauseMs,
      });
    }
  }

  #newFailure(): Failure {
    const firstMs = Math.min(2 * this.#options.intervalMs, longestPauseMs);
    return { backoff: new Backoff({ firstMs, longestMs: longestPauseMs }), times: 0, notBeforeMs: 0 };
  }

  /** Owners of leases of an earlier boot without an interface, once their grace is over. */
  async #stale(): Promise<readonly Owner[]> {
    if (performance.now() - this.#startedAtMs < this.#options.staleGraceMs) return [];
    return (await staleLeases(this.#context, this.#probes)).map(({ owner }) => owner);
  }

  /** Logged before anything is done, so that the log shows why an address became free. */
  #report(plan: string, owners: readonly Owner[]): void {
    if (owners.length === 0) return;
    this.#context.logger.warn(plan, {
      owners: owners.length,
      first: owners.slice(0, maxInLog).map(ownerFields),
      sources: this.#probes.map(({ name }) => name),
    });
  }
}
