import { assert } from "../shared/assert.ts";
import { ownerKey } from "../shared/cni/owner-key.ts";
import type { Attachment, Owner, Pod } from "../shared/cni/types.ts";
import { type Ip, sameIp } from "../shared/net/ip.ts";
import { type Applicant, assignRequests, chooseAddress } from "./allocate/choose.ts";
import { clearCooled, cooledBy, noteCooldown } from "./allocate/cooldown.ts";
import { generationMark } from "./allocate/marks.ts";
import {
  allocatedOf,
  confirm,
  forgetInterface,
  hasInterface,
  leasesOf,
  noteInterface,
} from "./allocate/owner-leases.ts";
import { hasAddress } from "./allocate/pick.ts";
import { holdsOthers } from "./allocate/refusals.ts";
import { noteAddress } from "./allocate/sticky.ts";
import { unclaimedTest } from "./allocate/unclaimed.ts";
import { type RangeUsage, usageOf } from "./allocate/usage.ts";
import { type AllocatorEnv, readBootId } from "./allocator-env.ts";
import type { IpamConfig } from "./config/ipam-config.ts";
import { type RangeSet, rangeOf } from "./config/ranges.ts";
import { databaseIn } from "./data-directory.ts";
import { type Allocation, isStaleLease, type Lease, type LeaseState, type LeftState } from "./lease.ts";
import { countsIn, keptPages, type NetworkCounts } from "./pages.ts";
import {
  type AddressesInUse,
  completeByList,
  declareComplete,
  missingSince,
  type Restored,
  requireComplete,
  restoreLeases,
} from "./recovery/integrity.ts";
import { type SqliteOptions, SqliteStore } from "./store/sqlite-store.ts";
import type { Store, Synchronous } from "./store/store.ts";

export interface OpenOptions extends SqliteOptions {
  /** As `AllocatorEnv.ended`. */
  readonly ended?: AllocatorEnv["ended"];
}

/** Addresses of one data directory. Every method is one transaction: done as a whole, durably, or without effect. */
export class Allocator implements Disposable {
  readonly #store: Store;
  readonly #env: AllocatorEnv;
  readonly #isLent: boolean;

  constructor(store: Store, env: AllocatorEnv, isLent = false) {
    this.#store = store;
    this.#env = env;
    this.#isLent = isLent;
  }

  /** The same for one call of many: disposing of it leaves the store open. */
  lend(): Allocator {
    return new Allocator(this.#store, this.#env, true);
  }

  /**
   * Opens `<dataDir>/leases.db`, and makes both when missing.
   * @throws {CniError} code 101 naming the path
   */
  static async open(dataDir: string, options: OpenOptions = {}): Promise<Allocator> {
    const store = await SqliteStore.open(databaseIn(dataDir), dataDir, options);
    return new Allocator(store, { bootId: readBootId(), now: Date.now, dataDir, ended: options.ended });
  }

  /**
   * As `open`, but `undefined` where nothing was ever leased: neither a query nor a DEL may need to create a file.
   * Only for these: it does not read the boot id, so leases made with it would belong to an unknown boot.
   */
  static async openExisting(dataDir: string): Promise<Allocator | undefined> {
    const store = await SqliteStore.openExisting(databaseIn(dataDir), dataDir);
    return store === undefined ? undefined : new Allocator(store, { bootId: "", now: Date.now, dataDir });
  }

  /** `undefined` where the leases are in memory only. */
  get dataDir(): string | undefined {
    return this.#env.dataDir;
  }

  /** Of the database. Empty where it is in memory. */
  get path(): string {
    return this.dataDir === undefined ? "" : databaseIn(this.dataDir);
  }

  /** The boot that new leases belong to; a lease of another boot is stale. Empty: unknown. */
  get bootId(): string {
    return this.#env.bootId;
  }

  /**
   * Gives the owner one address per range set, or those that it holds already. A released lease of the owner that
   * nobody got since is reused.
   * @param hasInterface the agent is about to make an interface for them: if that is lost, the leases end
   * @throws {CniError} code 101 where a range set is exhausted or a requested address cannot be given, 11 where that
   * one is about to be free
   */
  allocate(owner: Owner, config: IpamConfig, pod?: Pod, hasInterface = false): Allocation {
    return this.#store.transaction((): Allocation => {
      const allocation = this.#allocate(owner, config, pod);
      if (hasInterface) noteInterface(this.#store, owner, allocation.leases);
      return allocation;
    });
  }

  #allocate(owner: Owner, config: IpamConfig, pod: Pod | undefined): Allocation {
    const known = leasesOf(this.#store, owner);
    const held = allocatedOf(known);
    if (held.length > 0) return { leases: this.#confirm(owner, held, config, pod), created: false };
    requireComplete(this.#store, owner.network);
    const requested = assignRequests(config);
    const nowMs = this.#env.now();
    const cooledByMs = cooledBy(nowMs, config.cooldownMs);
    clearCooled(this.#store, owner.network, cooledByMs);
    noteCooldown(this.#store, owner.network, config.cooldownMs);
    const left = known.filter((lease) => lease.state !== "cooling" || (lease.releasedAtMs ?? 0) > cooledByMs);
    const applicant = { owner, pod, left, nowMs };
    const leases = config.rangeSets.map((set, i) => {
      const ip = chooseAddress(this.#store, applicant, set, config, requested.get(set));
      return this.#give(applicant, set, i, ip, config);
    });
    return { leases, created: true };
  }

  /** The lease stays as it is, but belongs to this boot now, since its owner has just called. */
  #confirm(
    owner: Owner,
    held: readonly Lease[],
    { requested, rangeSets }: IpamConfig,
    pod: Pod | undefined,
  ): readonly Lease[] {
    const other = requested.find((ip) => !held.some((lease) => sameIp(lease.address.ip, ip)));
    if (other !== undefined) throw holdsOthers(owner, held, other);
    const confirmed = confirm(held, rangeSets, this.#env.bootId, pod);
    for (const lease of confirmed) if (!held.includes(lease)) this.#store.put(lease);
    return confirmed;
  }

  #give({ owner, pod }: Applicant, set: RangeSet, rangeSet: number, ip: Ip, { sticky }: IpamConfig): Lease {
    const range = rangeOf(set, ip);
    assert(range !== undefined, "an address that is given out lies in its range set");
    const lease: Lease = {
      owner,
      rangeSet,
      address: { ip, prefix: range.subnet.prefix },
      gateway: range.gateway,
      state: "allocated",
      ...(pod === undefined ? {} : { pod }),
      ...(pod === undefined || !sticky ? {} : { sticky }),
      bootId: this.#env.bootId,
      generation: this.#nextGeneration(),
      allocatedAtMs: this.#env.now(),
    };
    this.#store.put(lease);
    return lease;
  }

  #nextGeneration(): number {
    const next = Number(this.#store.mark(generationMark) ?? "0") + 1;
    this.#store.setMark(generationMark, String(next));
    return next;
  }

  /** Releases what this allocation created, and nothing that was there before or came later. */
  undo(allocation: Allocation, to: LeftState): void {
    if (!allocation.created) return;
    this.#store.transaction((): void => {
      for (const lease of allocation.leases)
        if (this.#same(lease, "allocated") !== undefined) this.#leave(lease, to, false);
    });
  }

  /** The owner's allocated leases in the order of their range sets. */
  find(owner: Owner): readonly Lease[] {
    return allocatedOf(leasesOf(this.#store, owner));
  }

  /** Whether all of these leases are allocated as they were, by their generations. */
  holds(leases: readonly Lease[]): boolean {
    return leases.every((lease) => this.#store.holds(lease));
  }

  /** The owner's leases that wait until its interface is removed. */
  releasing(owner: Owner): readonly Lease[] {
    return leasesOf(this.#store, owner).filter((lease) => lease.state === "releasing");
  }

  /** Ends the owner's allocated leases; answers them as they are now. Nothing to release is no error. */
  release(owner: Owner, to: LeftState): readonly Lease[] {
    return this.#store.transaction((): readonly Lease[] => this.find(owner).map((lease) => this.#leave(lease, to)));
  }

  /** `releasing` becomes `cooling`; `false` if this same lease (by its generation) is no longer releasing. */
  finishRelease(lease: Lease): boolean {
    return this.#store.transaction((): boolean => {
      if (this.#same(lease, "releasing") === undefined) return false;
      this.#leave(lease, "cooling");
      return true;
    });
  }

  /** The owner's leases that are not cooling yet. */
  uncooled(owner: Owner): readonly Lease[] {
    return leasesOf(this.#store, owner).filter((lease) => lease.state !== "cooling");
  }

  /** The owner's interface is gone: deletes its pending detach, and of these leases lets unchanged ones cool. */
  endAttachment(owner: Owner, had: readonly Lease[]): void {
    this.#store.transaction((): void => {
      for (const lease of this.uncooled(owner))
        if (had.some(({ generation }) => generation === lease.generation)) this.#leave(lease, "cooling");
      this.#store.setPendingDetach(owner, false);
    });
  }

  /**
   * Ends one allocated lease if it is unchanged; `false` if it was released, given to another owner, or confirmed by an
   * ADD of this boot since. Used to reclaim leases of an earlier boot whose owner nobody knows.
   */
  reclaim(lease: Lease, to: LeftState): boolean {
    return this.#store.transaction((): boolean => {
      const now = this.#same(lease, "allocated");
      if (now === undefined || now.bootId !== lease.bootId) return false;
      this.#leave(now, to);
      return true;
    });
  }

  #same(lease: Lease, state: LeaseState): Lease | undefined {
    const [now] = this.#store.select({ by: "address", network: lease.owner.network, ip: lease.address.ip });
    return now?.generation === lease.generation && now.state === state ? now : undefined;
  }

  /** The time restarts when `releasing` becomes `cooling`, because only then is the address out of use. */
  #leave(lease: Lease, state: LeftState, wasHeld = true): Lease {
    const left = { ...lease, state, releasedAtMs: this.#env.now() };
    this.#store.put(left);
    if (state === "cooling")
      this.#env.ended?.({ ...left, releasedAtMs: lease.releasedAtMs ?? left.releasedAtMs }, wasHeld);
    if (lease.state === "allocated") {
      noteAddress(this.#store, lease);
      forgetInterface(this.#store, lease);
    }
    return left;
  }

  /**
   * Ends every allocated lease of the network whose attachment is not in `keep`; answers their owners. Each page of
   * leases is a transaction of its own: where there are very many, other processes wait for a page and not for all.
   * @param listAgeMs how old `keep` is (absent: just made): leases that were given since then cannot be on it and are kept
   */
  retain(network: string, keep: readonly Attachment[], to: LeftState, listAgeMs = (): number => -1): readonly Owner[] {
    // Before it waits for the lock, and before the age: a wait in between makes the list older than it is, not newer.
    const sinceMs = this.#env.now() - listAgeMs();
    this.#store.transaction((): void => completeByList(this.#store, network, keep));
    const owners = new Map<string, Owner>();
    for (const page of this.#unclaimedPages(network, keep, sinceMs)) {
      this.#store.transaction((): void => {
        for (const lease of page) {
          if (this.#same(lease, "allocated") === undefined) continue;
          this.#leave(lease, to);
          owners.set(ownerKey(lease.owner), lease.owner);
        }
      });
    }
    return [...owners.values()];
  }

  /** The leases that `retain` would end. */
  unclaimed(network: string, keep: readonly Attachment[]): readonly Lease[] {
    return [...this.#unclaimedPages(network, keep, this.#env.now() + 1)].flat();
  }

  *#unclaimedPages(network: string, keep: readonly Attachment[], sinceMs: number): Generator<readonly Lease[], void> {
    const now = (): number => this.#env.now();
    const isUnclaimed = unclaimedTest(this.#store, network, keep, { sinceMs, now });
    for (const page of this.pages(network)) {
      const unclaimed = page.filter(isUnclaimed);
      if (unclaimed.length > 0) yield unclaimed;
    }
  }

  /**
   * Records that these owners' leases have interfaces of the agent; for those that this process has not made itself.
   */
  noteInterfaces(owners: readonly Owner[]): void {
    this.#store.transaction((): void => {
      for (const owner of owners) noteInterface(this.#store, owner, this.find(owner));
    });
  }

  /** Whether the agent made an interface for this same lease, or was about to. */
  hasInterface(lease: Lease): boolean {
    return hasInterface(this.#store, lease);
  }

  /** Whether the network has leases of an earlier boot, which are reclaimed before its pool counts as exhausted. */
  hasStaleLeases(network: string): boolean {
    const isStale = (lease: Lease): boolean => lease.state === "allocated" && isStaleLease(lease, this.bootId);
    return this.pages(network).some((page) => page.some(isStale));
  }

  /** Leases in any state, by network and address; also those whose cooldown is over, whose addresses are free. */
  list(network?: string): readonly Lease[] {
    return this.#store.select({ by: "network", ...(network === undefined ? {} : { network }) });
  }

  /** The leases whose addresses are not free, a few hundred at a time; each page is read when it is asked for. */
  pages(network?: string): Generator<readonly Lease[], void> {
    return keptPages(this.#store, this.#env.now(), network);
  }

  /** Every network that has a lease, and how many in each state. */
  counts(): readonly NetworkCounts[] {
    return countsIn(this.#store, this.#env.now());
  }

  /** One entry per range set. */
  usage(network: string, config: IpamConfig): readonly RangeUsage[] {
    return config.rangeSets.map((set) => usageOf(this.#store, network, set, config, this.#env.now()));
  }

  /** As `usage`, but only for range sets without an address to give, so that usually nothing has to be counted. */
  exhausted(network: string, config: IpamConfig): readonly RangeUsage[] {
    return config.rangeSets
      .filter((set) => !hasAddress(this.#store, network, set, config.reserved))
      .map((set) => usageOf(this.#store, network, set, config, this.#env.now()));
  }

  /**
   * Writes a small row for good: only a real write shows a full disk.
   * @throws {CniError} code 101 naming the path and the reason where nothing can be written, 11 where others keep the
   * lock
   */
  requireWritable(): void {
    this.#store.transaction((): void => this.#store.setMark("written", String(this.#env.now())));
  }

  /** For `defersCheckpoints`: does what waits for the disk, if there is much of it. @throws {CniError} code 101 */
  checkpoint(): void {
    // The first write behind a checkpoint, which begins a new log, waits once more.
    if (this.#store.checkpoint()) this.requireWritable();
  }

  /** Restores the lost leases of an owner that uses addresses. */
  restore(inUse: AddressesInUse, rangeSets: readonly RangeSet[], isInUse: (owner: Owner) => boolean): Restored {
    const context = { ...this.#env, rangeSets, isInUse };
    return this.#store.transaction((): Restored => restoreLeases(this.#store, inUse, context));
  }

  /** `false` where leases of the network may have been lost with a damaged database: no new owner gets an address. */
  isComplete(network: string): boolean {
    return missingSince(this.#store, network) === undefined;
  }

  /** Records that every address of the network that is in use has a lease again. */
  declareComplete(network: string): void {
    this.#store.transaction((): void => declareComplete(this.#store, network));
  }

  /** @throws {CniError} code 101 where leases of the network were lost, so that none is given to a new owner */
  requireComplete(network: string): void {
    requireComplete(this.#store, network);
  }

  /** The value that a `transaction` has stored under this name. */
  mark(name: string): string | undefined {
    return this.#store.mark(name);
  }

  /** One transaction on the store, for parts of this room that change a whole network at once. */
  transaction<T>(work: (store: Store) => Synchronous<T>): T {
    return this.#store.transaction((): Synchronous<T> => work(this.#store)) as T;
  }

  /** Remembers that the agent still has to unwire this attachment, whose address another IPAM plugin keeps. */
  recordPendingDetach(owner: Owner): void {
    this.#store.transaction((): void => this.#store.setPendingDetach(owner, true));
  }

  pendingDetaches(): readonly Owner[] {
    return this.#store.pendingDetaches();
  }

  hasPendingDetach(owner: Owner): boolean {
    return this.#store.hasPendingDetach(owner);
  }

  forgetPendingDetach(owner: Owner): void {
    this.#store.transaction((): void => this.#store.setPendingDetach(owner, false));
  }

  /** Closes the file without waiting for the disk; a process that ends without this waits for it. */
  [Symbol.dispose](): void {
    if (!this.#isLent) this.#store[Symbol.dispose]();
  }
}
