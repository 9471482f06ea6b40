import type { Ip } from "../../shared/net/ip.ts";
import { countOf, type Intervals, intervalAt, intervalsOf, without } from "../config/intervals.ts";
import type { Lease, LeaseState } from "../lease.ts";
import type { Pool } from "./pools.ts";

/** What an address of a pool can be. */
export const addressKinds = ["allocated", "releasing", "cooling", "excluded", "gateway", "free"] as const;
export type AddressKind = (typeof addressKinds)[number];

export type Tally = Readonly<Record<AddressKind, bigint>>;

/** A lease counts before what the configuration says now: it may have changed since. */
export function kindOf(pool: Pool, ip: Ip, state: LeaseState | undefined): AddressKind {
  if (state !== undefined) return state;
  if (intervalAt(pool.gateways, ip) !== undefined) return "gateway";
  return intervalAt(pool.excluded, ip) !== undefined ? "excluded" : "free";
}

/** How many addresses of a stretch of the pool are what, for counting leases into; nothing is walked address by address. */
export class Counter {
  readonly #pool: Pool;
  readonly #counts: Record<AddressKind, bigint>;
  #onReserved = 0n;

  constructor(pool: Pool, within: Intervals = pool.windows) {
    this.#pool = pool;
    const gateways = inside(pool.gateways, within);
    const reserved = inside(intervalsOf([...pool.gateways, ...pool.excluded]), within);
    const [gateway, excluded] = [countOf(gateways), countOf(reserved) - countOf(gateways)];
    const free = countOf(within) - gateway - excluded;
    this.#counts = { allocated: 0n, releasing: 0n, cooling: 0n, excluded, gateway, free };
  }

  add({ address, state }: Lease): void {
    const kind = kindOf(this.#pool, address.ip, undefined);
    this.#counts[kind]--;
    this.#counts[state]++;
    if (kind !== "free") this.#onReserved++;
  }

  get tally(): Tally {
    return { ...this.#counts };
  }

  /** Addresses that can be given out, taken or not; a lease on an address that became reserved since is not among them. */
  get total(): bigint {
    return taken(this.#counts) - this.#onReserved + this.#counts.free;
  }
}

export const taken = (tally: Tally): bigint => tally.allocated + tally.releasing + tally.cooling;

const inside = (runs: Intervals, within: Intervals): Intervals =>
  within.flatMap((window) => {
    // What is left of the window without what is left of it without the runs: the runs' part of it.
    const others = without(window, runs);
    return without(window, others);
  });
