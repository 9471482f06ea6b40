import { ofAnotherBoot } from "../../ipam/mod.ts";
import { ownerFields, ownerKey, sameOwner } from "../../shared/cni/owner-key.ts";
import type { Owner } from "../../shared/cni/types.ts";
import { reasonOf } from "../../shared/reason.ts";
import type { AgentParts } from "./agent-parts.ts";
import { departedOwners, finishDeparted } from "./departed.ts";
import { missingOf, remakeMissing } from "./missing.ts";
import { interfaceSource, type Source } from "./sources.ts";
import { abandonedLeases } from "./suspects.ts";
import { endVanished, VanishedAttachments } from "./vanished.ts";

export interface JanitorOptions {
  readonly intervalMs: number;
  /** How long a lease of an earlier boot is left to its owner after the agent's start. */
  readonly suspectGraceMs: number;
  /** How long an interface that ended without a DEL is missed before its addresses are given back; absent: for ever. */
  readonly vanishedGraceMs?: number;
  /** Who is asked, beside the interfaces, before a lease is given back. */
  readonly sources?: readonly Source[];
}

interface Failure {
  readonly times: number;
  /** On the monotonic clock: a stepped clock must not stop the janitor. */
  readonly notBeforeMs: number;
}

/** What is to be done for an owner, in its lane; answers whether there was anything. */
interface Work {
  readonly owner: Owner;
  readonly work: () => Promise<boolean>;
}

const nothingBroken: Failure = { times: 0, notBeforeMs: 0 };

/** Even what fails again and again is tried this often. */
const longestPauseMs = 5 * 60_000;
/** After the first attempt at the data path that was in vain. */
const mendAgainMs = 1_000;
/** Owners that are named in one line of the log. */
const mostInLog = 20;
/** A bound of one round, so that stopping never waits long; the next round goes on. */
const mostPerRound = 256;

/**
 * Finishes what plugins could not: leases left in `releasing`, departures of delegated attachments,
 * leases of an earlier boot that nobody claims, and of this one whose interface has gone; makes interfaces again that were
 * lost, and mends the data path. It looks at the store again and again, because the
 * plugin's processes write there without asking the agent, and at once when it is told to.
 */
export class Janitor {
  readonly #parts: AgentParts;
  readonly #options: JanitorOptions;
  readonly #sources: readonly Source[];
  readonly #vanished: VanishedAttachments | undefined;
  readonly #startedAtMs = performance.now();
  readonly #failures = new Map<string, Failure>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #round: Promise<void> | undefined;
  #again = false;
  /** When an ADD last found no address, on the monotonic clock, and whether that is still to be seen to. */
  #wantedAtMs = Number.NEGATIVE_INFINITY;
  #isWanted = false;
  /** Of the data path: how often it was mended in vain, and when it is worth the next attempt. */
  #broken = nothingBroken;
  #repairing: Promise<void> | undefined;
  #mendAgain: ReturnType<typeof setTimeout> | undefined;
  #stopped = false;

  constructor(parts: AgentParts, options: JanitorOptions) {
    this.#parts = parts;
    this.#options = options;
    // The data path may come later than its janitor.
    const interfaces = interfaceSource({ list: () => parts.dataPath.list() });
    this.#sources = [interfaces, ...(options.sources ?? [])];
    const { vanishedGraceMs } = options;
    if (vanishedGraceMs !== undefined) this.#vanished = new VanishedAttachments(this.#sources, vanishedGraceMs);
  }

  start(): void {
    this.#schedule(this.#options.intervalMs);
  }

  /** A round now, or right after the one that runs. */
  poke(): void {
    if (this.#round !== undefined) this.#again = true;
    else if (!this.#stopped) this.#schedule(0);
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
    clearTimeout(this.#timer);
    await this.#round;
    await this.#repairing;
    clearTimeout(this.#mendAgain);
  }

  /** The data path alone, now: somebody may have changed what it stands on. Never throws. */
  async mend(): Promise<void> {
    if (!this.#stopped) await this.#repair();
  }

  /** Attachments that are given up and not finished. */
  departing(): number {
    return departedOwners(this.#parts).length;
  }

  #schedule(afterMs: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#round = this.round().finally(() => {
        this.#round = undefined;
        if (this.#stopped) return;
        this.#schedule(this.#again ? 0 : this.#options.intervalMs);
        this.#again = false;
      });
    }, afterMs);
  }

  /** One look at everything that may be due. Never throws: what fails is logged and comes again, later each time. */
  async round(): Promise<void> {
    await this.#repair();
    try {
      for (const { owner, work } of this.#due(this.#works()).slice(0, mostPerRound)) {
        if (this.#stopped) return;
        await this.#attempt(owner, work);
      }
      const abandoned = await this.#abandoned();
      this.#report("leases of an earlier boot are given back: no source knows their owners", abandoned);
      for (const owner of abandoned) await this.#attempt(owner, () => this.#giveBack(owner));
      const wanted = this.#isWanted;
      this.#isWanted = false;
      const vanished = (await this.#vanished?.due(this.#parts, wanted)) ?? [];
      this.#report(
        "leases whose interface has gone without a DEL are given back",
        vanished.map(({ owner }) => owner),
      );
      for (const gone of vanished) await this.#attempt(gone.owner, () => endVanished(this.#parts, gone));
    } catch (caught) {
      this.#parts.logger.error("the janitor could not look at the store", { error: reasonOf(caught) });
    }
  }

  /** A bridge that somebody took down or away would keep STATUS failing, and without ADDs nothing else would mend it. */
  #repair(): Promise<void> {
    this.#repairing ??= this.#repairOnce().finally(() => {
      this.#repairing = undefined;
    });
    return this.#repairing;
  }

  async #repairOnce(): Promise<void> {
    const { dataPath, logger } = this.#parts;
    try {
      const problems = await dataPath.problems();
      if (problems.length === 0) {
        this.#broken = nothingBroken;
        return;
      }
      if (performance.now() < this.#broken.notBeforeMs) return;
      const times = this.#broken.times + 1;
      this.#broken = { times, notBeforeMs: performance.now() + this.#mendAgainIn(times) };
      logger.warn("repairing the data path", { problems: problems.map((problem) => problem.message), times });
      await dataPath.start();
      // What has broken meanwhile is another matter.
      const left = new Set((await dataPath.problems()).map(({ message }) => message));
      if (problems.some(({ message }) => left.has(message))) return;
      this.#broken = nothingBroken;
      if (left.size === 0) clearTimeout(this.#mendAgain);
    } catch (caught) {
      logger.error("the data path could not be repaired", { error: reasonOf(caught) });
    }
  }

  /** What cannot be mended now is tried again, later each time. Answers when, in milliseconds. */
  #mendAgainIn(times: number): number {
    const pauseMs = Math.min(this.#options.intervalMs, mendAgainMs) * 2 ** Math.min(times - 1, 20);
    const ms = Math.min(pauseMs, longestPauseMs);
    clearTimeout(this.#mendAgain);
    this.#mendAgain = setTimeout(() => void this.mend(), ms);
    return ms;
  }

  #works(): readonly Work[] {
    const parts = this.#parts;
    return [
      ...departedOwners(parts).map((owner) => ({ owner, work: () => finishDeparted(parts, owner) })),
      ...missingOf(parts).map((lost) => ({ owner: lost.owner, work: () => remakeMissing(parts, lost) })),
    ];
  }

  #due(works: readonly Work[]): readonly Work[] {
    const known = new Set(works.map(({ owner }) => ownerKey(owner)));
    for (const key of this.#failures.keys()) if (!known.has(key)) this.#failures.delete(key);
    const now = performance.now();
    return works.filter(({ owner }) => (this.#failures.get(ownerKey(owner))?.notBeforeMs ?? 0) <= now);
  }

  async #attempt(owner: Owner, work: () => Promise<boolean>): Promise<void> {
    const key = ownerKey(owner);
    try {
      if (await work()) this.#parts.logger.info("tidied up", ownerFields(owner));
      this.#failures.delete(key);
    } catch (caught) {
      const times = (this.#failures.get(key)?.times ?? 0) + 1;
      const pauseMs = this.#pauseMs(times);
      this.#failures.set(key, { times, notBeforeMs: performance.now() + pauseMs });
      this.#parts.logger.error("tidying up failed and is tried again", {
        ...ownerFields(owner),
        error: reasonOf(caught),
        times,
        pauseMs,
      });
    }
  }

  #pauseMs(times: number): number {
    return Math.min(this.#options.intervalMs * 2 ** Math.min(times, 20), longestPauseMs);
  }

  /** Owners of leases of an earlier boot without an interface, once their grace is over. */
  async #abandoned(): Promise<Owner[]> {
    if (performance.now() - this.#startedAtMs < this.#options.suspectGraceMs) return [];
    const leases = await abandonedLeases(this.#parts, this.#sources);
    return [...new Map(leases.map(({ owner }) => [ownerKey(owner), owner])).values()];
  }

  /** Before anything happens, so that it can be told afterwards why an address was free. */
  #report(plan: string, owners: readonly Owner[]): void {
    if (owners.length === 0) return;
    this.#parts.logger.warn(plan, {
      owners: owners.length,
      first: owners.slice(0, mostInLog).map(ownerFields),
      sources: this.#sources.map(({ name }) => name),
    });
  }

  #giveBack(owner: Owner): Promise<boolean> {
    return this.#parts.lanes.run(ownerKey(owner), { what: `giving back "${owner.sandboxId}"` }, async () => {
      const leases = this.#parts.allocator.find(owner);
      // Claimed meanwhile: an ADD renews the boot of its lease.
      if (leases.length === 0 || !leases.every((lease) => ofAnotherBoot(lease, this.#parts.allocator.bootId)))
        return false;
      if ((await this.#parts.dataPath.list()).some((attached) => sameOwner(attached.owner, owner))) return false;
      this.#parts.allocator.release(owner, "cooling");
      return true;
    });
  }
}
