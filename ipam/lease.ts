import type { Owner, Pod } from "../shared/cni/types.ts";
import type { Cidr, Ip } from "../shared/net/ip.ts";

/**
 * `allocated → releasing → cooling → free`: a free address has no lease.
 *
 * - `allocated`: its owner holds it.
 * - `releasing`: its owner has left, its interface may still stand. Only the agent ends this state.
 * - `cooling`: nothing uses it any more; it is kept out of reuse for a while, and given out early only when nothing
 *   else is free.
 */
export const leaseStates = ["allocated", "releasing", "cooling"] as const;
export type LeaseState = (typeof leaseStates)[number];

/** The state of a lease after its release: `releasing` while its interface may exist, else `cooling`. */
export type LeftState = Exclude<LeaseState, "allocated">;

/** One address in use, as the store keeps it. */
export interface Lease {
  readonly owner: Owner;
  /** Index of the range set that it came from. */
  readonly rangeSet: number;
  /** The address with its subnet's prefix length. */
  readonly address: Cidr;
  /** Absent where the range has none. */
  readonly gateway?: Ip;
  readonly state: LeaseState;
  readonly pod?: Pod;
  /** When the lease is released, the store remembers the pod's address. */
  readonly sticky?: true;
  /** The boot in which it was given out; another one makes it stale. */
  readonly bootId: string;
  /** Increases over the whole store, so that it tells this lease from a later one of the same owner. */
  readonly generation: number;
  /** Milliseconds since 1970. */
  readonly allocatedAtMs: number;
  /** Since when it is `releasing` or `cooling`; absent while allocated. */
  readonly releasedAtMs?: number;
}

/** Whether it is of an earlier boot. If a boot has no name (`""`), no lease is stale. */
export const isStaleLease = (lease: Lease, bootId: string): boolean =>
  bootId !== "" && lease.bootId !== "" && lease.bootId !== bootId;

/** What one `allocate` answered: a lease per range set, in their order. */
export interface Allocation {
  readonly leases: readonly Lease[];
  /** `false` if the owner held them before. */
  readonly created: boolean;
}
