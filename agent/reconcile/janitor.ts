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
  /** How long a lease of an earlier boot is left to its owner after the agent's start. */
  readonly staleGraceMs: number;
  /** How long an interface that ended without a DEL is missed before its addresses are given back; absent: for ever. */
  readonly interfaceLostGraceMs?: number;
  /** Who is asked, beside the interfaces, before a lease is given back. */
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

/** Even what fails again and again is tried this often. */
const longestPauseMs = 5 * 60_000;
/** Owners that are named in one line of the log. */
const maxInLog = 20;
/** Of one round, so that stopping never waits long; the next round goes on. */
const maxPerRound = 256;

/**
 * Finishes what plugins could not: leases left in `releasing`, DELs of delegated attachments that are on record,
 * leases of an earlier boot that nobody claims, and of this one whose interface has gone; makes interfaces again that
 * were lost, and repairs the data path. It looks at the store again and again, because the plugin's processes write
 * there without asking the agent, and at once when it is told to.
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
  /** When an ADD last found no address, on the monotonic clock, and whether that is still to be seen to. */
  #wantedAtMs = Number.NEGATIVE_INFINITY;
  #isWanted = false;
  #stopped = false;

  constructor(context: AgentContext, options: JanitorOptions) {
    this.#context = context;
    this.#options = options;
    // The data path may come later than its janitor.
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

  /** A round now, or right after the one that runs. */
  poke(): void {
    this.#loop?.trigger();
  }

  /** An ADD has found no address: what is gone gives its addresses back without a grace. Once in an interval at most. */
  makeRoom(): void {
    const now = performance.now();
    if (now < this.#wantedAtMs + this.#options.intervalMs) return;
    this.#wantedAtMs = now;
    this.#isWanted = true;
    this.poke();
  }

  /** No round begins any more; waits for the one that runs. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#loop?.[Symbol.asyncDispose]();
    await this.#repair.stop();
  }

  /** The data path alone, now: somebody may have changed what it stands on. Never throws. */
  async repair(): Promise<void> {
    if (!this.#stopped) await this.#repair.run();
  }

  /** How many attachments have left and are not finished. */
  pendingDetaches(): number {
    return pendingDetaches(this.#context).length;
  }

  /** One look at everything that may be due. Never throws: what fails is logged and comes again, later each time. */
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

  /** Before anything happens, so that it can be told afterwards why an address was free. */
  #report(plan: string, owners: readonly Owner[]): void {
    if (owners.length === 0) return;
    this.#context.logger.warn(plan, {
      owners: owners.length,
      first: owners.slice(0, maxInLog).map(ownerFields),
      sources: this.#probes.map(({ name }) => name),
    });
  }
}
