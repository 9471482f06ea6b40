import type { Lease } from "../../ipam/lease.ts";
import { numberOf } from "../../ipam/store/address-key.ts";
import {
  type LeaseQuery,
  type PodPlace,
  refuseAsync,
  refusePromise,
  type Store,
  type Synchronous,
  type TakenCount,
} from "../../ipam/store/store.ts";
import { assert } from "../../shared/assert.ts";
import { sameOwner } from "../../shared/cni/owner-key.ts";
import type { Owner } from "../../shared/cni/types.ts";
import { formatIp, type Ip, ipOf, sameIp } from "../../shared/net/ip.ts";

/**
 * Leases in memory, in the plainest way: what the database must agree with, and a store for
 * whoever wants the allocator without a file. Its cost grows with the number of leases.
 */
export class MemoryStore implements Store {
  #leases = new Map<string, Lease>();
  #marks = new Map<string, string>();
  /** The newest last. */
  #notes: readonly Note[] = [];
  #pendingDetaches: readonly Owner[] = [];
  #inTransaction = false;

  transaction<T>(work: () => Synchronous<T>): T {
    refuseAsync(work);
    assert(!this.#inTransaction, "transactions do not nest");
    const before = {
      leases: new Map(this.#leases),
      marks: new Map(this.#marks),
      notes: this.#notes,
      pendingDetaches: this.#pendingDetaches,
    };
    this.#inTransaction = true;
    try {
      return refusePromise(work());
    } catch (caught) {
      this.#leases = before.leases;
      this.#marks = before.marks;
      this.#notes = before.notes;
      this.#pendingDetaches = before.pendingDetaches;
      throw caught;
    } finally {
      this.#inTransaction = false;
    }
  }

  select(query: LeaseQuery): readonly Lease[] {
    const all = [...this.#leases.values()].sort(byNetworkAndAddress);
    switch (query.by) {
      case "owner":
        return all.filter((lease) => sameOwner(lease.owner, query.owner));
      case "address":
        return all.filter((lease) => lease.owner.network === query.network && sameIp(lease.address.ip, query.ip));
      case "window":
        return all
          .filter((lease) => lease.owner.network === query.network && within(lease, query))
          .slice(0, query.limit);
      case "network":
        return query.network === undefined ? all : all.filter((lease) => lease.owner.network === query.network);
      case "page":
        return all
          .filter(({ owner, address }) => isBehind(query.after, { network: owner.network, ip: address.ip }))
          .slice(0, query.limit);
      case "cooling":
        return all
          .filter((lease) => lease.owner.network === query.network && lease.state === "cooling")
          .filter((lease) => query.within === undefined || within(lease, query.within))
          .filter((lease) => releasedAt(lease) <= query.releasedByMs)
          .sort((a, b) => releasedAt(a) - releasedAt(b) || a.generation - b.generation)
          .slice(0, query.limit);
      case "cooled":
        return this.select({ ...query, by: "cooling" });
    }
  }

  holds({ owner, address, generation }: Lease): boolean {
    const now = this.#leases.get(nameOf(owner.network, address.ip));
    return now?.generation === generation && now.state === "allocated";
  }

  put(lease: Lease): void {
    assert(this.#inTransaction, "leases change inside a transaction");
    this.#leases.set(nameOf(lease.owner.network, lease.address.ip), lease);
  }

  remove(lease: Lease): void {
    assert(this.#inTransaction, "leases change inside a transaction");
    this.#leases.delete(nameOf(lease.owner.network, lease.address.ip));
  }

  nextFree(network: string, from: Ip): Ip {
    let ip = from;
    while (this.#leases.has(nameOf(network, ip))) ip = ipOf(ip.family, ip.value + 1n);
    return ip;
  }

  count(network: string, from: Ip, to: Ip, cooledByMs: number): TakenCount {
    const taken = [...this.#leases.values()]
      .filter((lease) => lease.owner.network === network && within(lease, { from, to }))
      .filter((lease) => lease.state !== "cooling" || releasedAt(lease) > cooledByMs);
    const inState = (state: Lease["state"]): number => taken.filter((lease) => lease.state === state).length;
    return { taken: BigInt(taken.length), releasing: inState("releasing"), cooling: inState("cooling") };
  }

  mark(name: string): string | undefined {
    return this.#marks.get(name);
  }

  setMark(name: string, value: string | undefined): void {
    assert(this.#inTransaction, "marks change inside a transaction");
    if (value === undefined) this.#marks.delete(name);
    else this.#marks.set(name, value);
  }

  remembered(place: PodPlace): readonly Ip[] {
    return this.#notes
      .filter((note) => samePlace(note.place, place))
      .map(({ ip }) => ip)
      .reverse();
  }

  remember(place: PodPlace, rangeSet: number, ip: Ip, most: number): void {
    assert(this.#inTransaction, "notes change inside a transaction");
    const others = this.#notes.filter((note) => note.rangeSet !== rangeSet || !samePlace(note.place, place));
    this.#notes = [...others, { place, rangeSet, ip }].slice(-most);
  }

  pendingDetaches(): readonly Owner[] {
    return this.#pendingDetaches;
  }

  hasPendingDetach(owner: Owner): boolean {
    return this.#pendingDetaches.some((other) => sameOwner(other, owner));
  }

  setPendingDetach(owner: Owner, present: boolean): void {
    assert(this.#inTransaction, "pending detaches change inside a transaction");
    const known = this.#pendingDetaches.some((other) => sameOwner(other, owner));
    if (present && !known) this.#pendingDetaches = [...this.#pendingDetaches, owner];
    if (!present) this.#pendingDetaches = this.#pendingDetaches.filter((other) => !sameOwner(other, owner));
  }

  checkpoint(): boolean {
    return false;
  }

  [Symbol.dispose](): void {
    this.#leases.clear();
  }
}

interface Note {
  readonly place: PodPlace;
  readonly rangeSet: number;
  readonly ip: Ip;
}

const samePlace = (a: PodPlace, b: PodPlace): boolean =>
  a.network === b.network && a.ifname === b.ifname && a.namespace === b.namespace && a.name === b.name;

const nameOf = (network: string, ip: Ip): string => `${network} ${formatIp(ip)}`;

const releasedAt = (lease: Lease): number => lease.releasedAtMs ?? Number.POSITIVE_INFINITY;

function within(lease: Lease, window: { readonly from: Ip; readonly to: Ip }): boolean {
  const number = numberOf(lease.address.ip);
  return number >= numberOf(window.from) && number <= numberOf(window.to);
}

function byNetworkAndAddress(a: Lease, b: Lease): number {
  return isBehind({ network: a.owner.network, ip: a.address.ip }, { network: b.owner.network, ip: b.address.ip })
    ? -1
    : 1;
}

interface Place {
  readonly network: string;
  readonly ip: Ip;
}

function isBehind(place: Place, other: Place): boolean {
  return other.network === place.network ? numberOf(other.ip) > numberOf(place.ip) : other.network > place.network;
}
