import { assert } from "../../shared/assert.ts";
import type { Owner } from "../../shared/cni/types.ts";
import type { Ip } from "../../shared/net/ip.ts";
import type { Lease } from "../lease.ts";

/** Which leases to read. All but `cooling` and `cooled` come by network and address. */
export type LeaseQuery =
  | { readonly by: "owner"; readonly owner: Owner }
  | { readonly by: "address"; readonly network: string; readonly ip: Ip }
  /** From one address to another, both included, the lowest `limit`. */
  | { readonly by: "window"; readonly network: string; readonly from: Ip; readonly to: Ip; readonly limit: number }
  /** Without `network` those of every network. */
  | { readonly by: "network"; readonly network?: string }
  /** The first `limit` behind this place, whether or not a lease is there, through all networks. */
  | { readonly by: "page"; readonly after: { readonly network: string; readonly ip: Ip }; readonly limit: number }
  /** The longest released `limit` of those that were released at `releasedByMs` or before. */
  | {
      readonly by: "cooling";
      readonly network: string;
      readonly releasedByMs: number;
      readonly within?: { readonly from: Ip; readonly to: Ip };
      readonly limit: number;
    }
  /** Any `limit` of those, for whoever does not care which: to bring them in order costs twice as much as to find that there is none. */
  | { readonly by: "cooled"; readonly network: string; readonly releasedByMs: number; readonly limit: number };

/** How many addresses of a window have a lease that keeps them. */
export interface TakenCount {
  /** In any state. */
  readonly taken: bigint;
  readonly releasing: number;
  readonly cooling: number;
}

/** A pod in a network, by names that its successor has too. */
export interface PodPlace {
  readonly network: string;
  readonly ifname: string;
  readonly namespace: string;
  readonly name: string;
}

/**
 * Where leases are kept. The allocator's rules are not known here, and it knows nothing of tables.
 *
 * An address of a network has one lease at most. Changes are made inside `transaction` only.
 */
export interface Store extends Disposable {
  /**
   * Runs `work` as the only writer among all processes; everything it changed is kept, or nothing when it throws.
   * `work` must not be asynchronous: a transaction that waits would keep every other process waiting.
   */
  transaction<T>(work: () => Synchronous<T>): T;
  select(query: LeaseQuery): readonly Lease[];
  /** Whether the address still has this very lease, by its generation, and it is allocated. */
  holds(lease: Lease): boolean;
  /** Adds the lease of this network and address, or replaces it. */
  put(lease: Lease): void;
  /** The address is free again. */
  remove(lease: Lease): void;
  /** The lowest address without a lease that is `from` or above; may lie beyond the family's last. */
  nextFree(network: string, from: Ip): Ip;
  /** What cools and was released at `cooledByMs` or before keeps its address no more. */
  count(network: string, from: Ip, to: Ip, cooledByMs: number): TakenCount;
  /** A small text under a name, such as the address given out last. */
  mark(name: string): string | undefined;
  /** `undefined` takes the text away. */
  setMark(name: string, value: string | undefined): void;
  /** The addresses that the pod had last: one for each range set at most, the latest first. */
  remembered(place: PodPlace): readonly Ip[];
  /** Notes the pod's address of this range set, and forgets the oldest notes of all pods until `most` are left. */
  remember(place: PodPlace, rangeSet: number, ip: Ip, most: number): void;
  /** Attachments that the agent has yet to unwire and whose address another IPAM plugin keeps, oldest first. */
  pendingDetaches(): readonly Owner[];
  hasPendingDetach(owner: Owner): boolean;
  setPendingDetach(owner: Owner, present: boolean): void;
  /** Does what waits for the disk, at a moment when nobody waits for an answer. @returns whether there was any */
  checkpoint(): boolean;
}

/** Refuses a promise where the compiler can see it; the stores refuse the others. */
export type Synchronous<T> = T extends PromiseLike<unknown> ? never : T;

/** An async function is refused before it runs: its first part would otherwise have happened. */
export function refuseAsync(work: () => unknown): void {
  assert(work.constructor.name !== "AsyncFunction", "the work of a transaction is synchronous");
}

export function refusePromise<T>(value: T): T {
  const then = typeof value === "object" && value !== null ? (value as { then?: unknown }).then : undefined;
  assert(typeof then !== "function", "the work of a transaction answers no promise");
  return value;
}
