import { assert } from "../shared/assert.ts";
import type { Owner, Pod } from "../shared/cni/types.ts";
import { formatIp, type Ip, parseIp, sameIp } from "../shared/ip.ts";
import { limits } from "../shared/limits.ts";
import { paths } from "../shared/paths.ts";
import { readBootId } from "./boot-id.ts";
import type { IpamConfig } from "./config/ipam-config.ts";
import { formatRangeSet, type RangeSet, rangeOf, sizeOf } from "./config/ranges.ts";
import type { Lease, LeaseState } from "./lease.ts";
import { firstAddress, lastAddress, leasePages, networksIn } from "./pages.ts";
import { longestCooling, nextAddress } from "./pick.ts";
import { exhausted, holdsOthers, isGateway, isTaken, notInRanges } from "./refusals.ts";
import { SqliteStore, type StoreLifetime } from "./store/sqlite-store.ts";
import type { Store } from "./store/store.ts";

/** Where a lease goes that its owner leaves: `releasing` while an interface may stand, else `cooling`. */
export type LeftState = Exclude<LeaseState, "allocated">;

/** What one `allocate` answered: a lease per range set, in their order. */
export interface Allocation {
  readonly leases: readonly Lease[];
  /** `false` where the owner held them before. */
  readonly created: boolean;
}

/** Numbers of one range set; gateways are not counted. `total = used + cooling + free`. */
export interface RangeUsage {
  /** `start-end[,start-end]`. */
  readonly range: string;
  readonly total: bigint;
  /** Allocated or releasing. */
  readonly used: number;
  readonly cooling: number;
  readonly free: bigint;
}

/** How many leases of a network are in which state. */
export interface NetworkCounts {
  readonly network: string;
  readonly allocated: number;
  readonly releasing: number;
  readonly cooling: number;
}

/** An attachment by the names that the CNI specification has for it. */
export interface Attachment {
  readonly containerId: string;
  readonly ifname: string;
}

/** What the allocator knows of the world around it. */
export interface Surroundings {
  /** Empty: unknown. */
  readonly bootId: string;
  /** Milliseconds since 1970. */
  now(): number;
}

export interface OpenOptions {
  /** `process` when not given. */
  readonly lifetime?: StoreLifetime;
  /** What `readBootId` answers, where it was begun earlier. */
  readonly bootId?: Promise<string>;
}

const generationMark = "generation";

/**
 * Addresses of one data directory. Every method is one transaction: it has happened as a whole, durably
 * against a crash of the process, or not at all.
 */
export class Allocator implements Disposable {
  readonly #store: Store;
  readonly #surroundings: Surroundings;

  constructor(store: Store, surroundings: Surroundings) {
    this.#store = store;
    this.#surroundings = surroundings;
  }

  /**
   * Opens `<dataDir>/leases.db`, and makes both when missing.
   * @throws {CniError} code 101 naming the path
   */
  static async open(dataDir: string, options: OpenOptions = {}): Promise<Allocator> {
    const { lifetime, bootId: reading = readBootId() } = options;
    // Another thread reads while this one opens the database.
    const [bootId, store] = await Promise.all([reading, SqliteStore.open(databaseIn(dataDir), dataDir, lifetime)]);
    return new Allocator(store, { bootId, now: Date.now });
  }

  /**
   * As `open`, but `undefined` where nothing was ever leased: a look must not leave a file behind, and a DEL must not
   * fail because it cannot make one. Meant for looking and releasing: it spares itself the id of the boot, so that
   * leases it made would be of an unknown one.
   */
  static async openExisting(dataDir: string): Promise<Allocator | undefined> {
    const store = await SqliteStore.openExisting(databaseIn(dataDir));
    return store === undefined ? undefined : new Allocator(store, { bootId: "", now: Date.now });
  }

  /** The boot that new leases are noted with; a lease of another one is suspect. Empty: unknown. */
  get bootId(): string {
    return this.#surroundings.bootId;
  }

  /**
   * Gives the owner one address per range set, or those that it holds already. A lease that it left and that
   * nobody got since is taken up again.
   * @throws {CniError} code 101 where a range set is exhausted or a requested address cannot be given, 11 where
   * that one is about to be free
   */
  allocate(owner: Owner, config: IpamConfig, pod?: Pod): Allocation {
    return this.#store.transaction((): Allocation => {
      const held = this.find(owner);
      if (held.length > 0) return { leases: this.#confirm(owner, held, config), created: false };
      this.#clearCooled(owner.network, config.cooldownMs);
      const left = this.#store.select({ by: "owner", owner });
      const reserved = reservedIn(config);
      const requested = assignRequests(config);
      const leases = config.rangeSets.map((set, i) => {
        const ip = this.#choose(owner, set, reserved, requested.get(set), left);
        return this.#give(owner, set, i, ip, pod);
      });
      return { leases, created: true };
    });
  }

  /** The lease stays as it is, but belongs to this boot now: its owner has just been heard of. */
  #confirm(owner: Owner, held: readonly Lease[], { requested }: IpamConfig): readonly Lease[] {
    const other = requested.find((ip) => !held.some((lease) => sameIp(lease.address.ip, ip)));
    if (other !== undefined) throw holdsOthers(owner, held, other);
    const { bootId } = this.#surroundings;
    const confirmed = held.map((lease) => (lease.bootId === bootId ? lease : { ...lease, bootId }));
    for (const lease of confirmed) if (!held.includes(lease)) this.#store.put(lease);
    return confirmed;
  }

  #choose(owner: Owner, set: RangeSet, reserved: readonly Ip[], asked: Ip | undefined, left: readonly Lease[]): Ip {
    const { network } = owner;
    if (asked !== undefined) {
      if (reserved.some((ip) => sameIp(ip, asked))) throw isGateway(asked, set);
      const [lease] = this.#store.select({ by: "address", network, ip: asked });
      const own = left.some((candidate) => sameIp(candidate.address.ip, asked));
      // Whoever asks for an address wants this one, so it need not cool.
      if (lease !== undefined && lease.state !== "cooling" && !own) throw isTaken(lease, set);
      return asked;
    }
    const before = left.find(
      ({ address: { ip } }) => rangeOf(set, ip) !== undefined && !reserved.some((other) => sameIp(other, ip)),
    );
    if (before !== undefined) return before.address.ip;
    const last = parseIp(this.#store.mark(cursorMark(network, set)) ?? "");
    const next = nextAddress(this.#store, network, set, reserved, last);
    const ip = next ?? longestCooling(this.#store, network, set, reserved)?.address.ip;
    if (ip === undefined) throw exhausted(this.#store, network, set, reserved);
    return ip;
  }

  #give(owner: Owner, set: RangeSet, rangeSet: number, ip: Ip, pod: Pod | undefined): Lease {
    const range = rangeOf(set, ip);
    assert(range !== undefined, "an address that is given out lies in its range set");
    const lease: Lease = {
      owner,
      rangeSet,
      address: { ip, prefix: range.subnet.prefix },
      gateway: range.gateway,
      state: "allocated",
      ...(pod === undefined ? {} : { pod }),
      bootId: this.#surroundings.bootId,
      generation: this.#nextGeneration(),
      allocatedAtMs: this.#surroundings.now(),
    };
    this.#store.put(lease);
    this.#store.setMark(cursorMark(owner.network, set), formatIp(ip));
    return lease;
  }

  #nextGeneration(): number {
    const next = Number(this.#store.mark(generationMark) ?? "0") + 1;
    this.#store.setMark(generationMark, String(next));
    return next;
  }

  /** A bounded number each time, so that the cost of an allocation does not depend on how many were released before. */
  #clearCooled(network: string, cooldownMs: number): void {
    const releasedByMs = this.#surroundings.now() - cooldownMs;
    const cooled = this.#store.select({ by: "cooling", network, releasedByMs, limit: limits.cooledPerAllocation });
    for (const lease of cooled) this.#store.remove(lease);
  }

  /** Takes back what this allocation created, and nothing that was there before or came after it. */
  undo(allocation: Allocation, to: LeftState): void {
    if (!allocation.created) return;
    this.#store.transaction((): void => {
      for (const lease of allocation.leases) {
        if (this.#isStill(lease, "allocated")) this.#leave(lease, to);
      }
    });
  }

  /** The owner's allocated leases in the order of their range sets. */
  find(owner: Owner): readonly Lease[] {
    return inSetOrder(this.#store.select({ by: "owner", owner }).filter((lease) => lease.state === "allocated"));
  }

  /** The owner's leases that wait for its interface to go. */
  releasing(owner: Owner): readonly Lease[] {
    return this.#store.select({ by: "owner", owner }).filter((lease) => lease.state === "releasing");
  }

  /** Ends the owner's allocated leases; answers them as they are now. Nothing to release is no error. */
  release(owner: Owner, to: LeftState): readonly Lease[] {
    return this.#store.transaction((): readonly Lease[] => this.find(owner).map((lease) => this.#leave(lease, to)));
  }

  /** `releasing` becomes `cooling`; `false` where this very lease (by its generation) is not releasing any more. */
  settle(lease: Lease): boolean {
    return this.#store.transaction((): boolean => {
      if (!this.#isStill(lease, "releasing")) return false;
      this.#leave(lease, "cooling");
      return true;
    });
  }

  #isStill(lease: Lease, state: LeaseState): boolean {
    const [now] = this.#store.select({ by: "address", network: lease.owner.network, ip: lease.address.ip });
    return now?.generation === lease.generation && now.state === state;
  }

  /** The time counts anew from `releasing` to `cooling`: only now is the address out of use. */
  #leave(lease: Lease, state: LeftState): Lease {
    const left: Lease = { ...lease, state, releasedAtMs: this.#surroundings.now() };
    this.#store.put(left);
    return left;
  }

  /** Ends every allocated lease of the network whose attachment is not in `keep`; answers their owners. */
  retain(network: string, keep: readonly Attachment[], to: LeftState): readonly Owner[] {
    const kept = new Set(keep.map(({ containerId, ifname }) => `${containerId} ${ifname}`));
    const owners = new Map<string, Owner>();
    return this.#store.transaction((): readonly Owner[] => {
      for (const lease of this.#store.select({ by: "network", network })) {
        const name = `${lease.owner.sandboxId} ${lease.owner.ifname}`;
        if (lease.state !== "allocated" || kept.has(name)) continue;
        this.#leave(lease, to);
        owners.set(name, lease.owner);
      }
      return [...owners.values()];
    });
  }

  /** Leases in any state, by network and address. */
  list(network?: string): readonly Lease[] {
    return this.#store.select({ by: "network", ...(network === undefined ? {} : { network }) });
  }

  /** As `list`, a few hundred at a time, each page read when it is asked for: for when there may be very many. */
  pages(network?: string): Generator<readonly Lease[], void> {
    return leasePages(this.#store, network);
  }

  /** Every network that has a lease, and how many in each state. */
  counts(): readonly NetworkCounts[] {
    return networksIn(this.#store).map((network) => {
      const { taken, releasing, cooling } = this.#store.count(network, firstAddress, lastAddress);
      return { network, allocated: Number(taken) - releasing - cooling, releasing, cooling };
    });
  }

  /** One entry per range set. */
  usage(network: string, config: IpamConfig): readonly RangeUsage[] {
    const reserved = reservedIn(config);
    return config.rangeSets.map((set) => {
      const counts = set.map(({ start, end }) => this.#store.count(network, start, end));
      const taken = counts.reduce((sum, count) => sum + count.taken, 0n);
      const cooling = counts.reduce((sum, count) => sum + count.cooling, 0);
      const total = sizeOf(set, reserved);
      const free = total - taken;
      return {
        range: formatRangeSet(set),
        total,
        used: Number(taken) - cooling,
        cooling,
        // Below zero where an address in use has become a gateway since.
        free: free > 0n ? free : 0n,
      };
    });
  }

  /**
   * Writes and keeps a trifle: only that shows a disk that is full.
   * @throws {CniError} code 101 naming the path and the reason where nothing can be written, 11 where others keep the lock
   */
  requireWritable(): void {
    this.#store.transaction((): void => this.#store.setMark("written", String(this.#surroundings.now())));
  }

  /** Remembers that the agent still has to unwire this attachment, whose address another IPAM plugin keeps. */
  recordDeparture(owner: Owner): void {
    this.#store.transaction((): void => this.#store.setDeparture(owner, true));
  }

  departures(): readonly Owner[] {
    return this.#store.departures();
  }

  forgetDeparture(owner: Owner): void {
    this.#store.transaction((): void => this.#store.setDeparture(owner, false));
  }

  /** Closes the file, without any wait for the disk; a process that ends without having closed it waits. */
  [Symbol.dispose](): void {
    this.#store[Symbol.dispose]();
  }
}

const databaseIn = (dataDir: string): string => `${dataDir}${paths.directorySeparator}leases.db`;

const cursorMark = (network: string, set: RangeSet): string => `last ${network} ${formatRangeSet(set)}`;

/** The gateways of every range: one of them may lie in the window of another. */
const reservedIn = (config: IpamConfig): readonly Ip[] =>
  config.rangeSets.flatMap((set) => set.map((range) => range.gateway));

const inSetOrder = (leases: readonly Lease[]): readonly Lease[] =>
  [...leases].sort((a, b) => a.rangeSet - b.rangeSet || a.generation - b.generation);

/**
 * Each range set takes the first request that lies in it.
 * @throws {CniError} code 101 where one is left over
 */
function assignRequests({ rangeSets, requested }: IpamConfig): ReadonlyMap<RangeSet, Ip> {
  const assigned = new Map<RangeSet, Ip>();
  const left = requested.filter((ip) => {
    const set = rangeSets.find((candidate) => !assigned.has(candidate) && rangeOf(candidate, ip) !== undefined);
    if (set !== undefined) assigned.set(set, ip);
    return set === undefined;
  });
  if (left.length > 0) throw notInRanges(left, rangeSets);
  return assigned;
}
