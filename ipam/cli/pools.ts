import { firstOf, formatIp, type Ip, lastOf, parseIp, plus } from "../../shared/net/ip.ts";
import { exitStatus } from "../../shared/terminal/exit-status.ts";
import type { TerminalIo } from "../../shared/terminal/terminal-io.ts";
import {
  countOf,
  formatInterval,
  type Interval,
  type Intervals,
  intervalAt,
  intervalsOf,
  overlap,
  without,
} from "../config/intervals.ts";
import type { IpamConfig } from "../config/ipam-config.ts";
import { formatRangeSet } from "../config/ranges.ts";
import { databaseIn } from "../data-directory.ts";
import type { Lease, LeaseState } from "../lease.ts";
import { StoreSnapshot } from "../store/store-snapshot.ts";
import { ipamConfigOf } from "./network-conf.ts";
import { type Scope, sayMissing, sayNothingGiven, unknownNetwork } from "./scope.ts";

/** The addresses of one range set of a network. */
export interface Pool {
  readonly network: string;
  /** `start-end[,start-end]`. */
  readonly range: string;
  readonly windows: Intervals;
  /** Gateways of the network; they need not lie in the windows. */
  readonly gateways: Intervals;
  readonly excluded: Intervals;
  /** The store knows neither what is excluded nor where a range that never gave an address lies. */
  readonly from: "configuration" | "store";
}

export const poolsOfConfig = (network: string, { rangeSets, gateways, excluded }: IpamConfig): readonly Pool[] =>
  rangeSets.map((set) => ({
    network,
    range: formatRangeSet(set),
    windows: intervalsOf(set.map(({ start, end }) => ({ first: start, last: end }))),
    gateways,
    excluded,
    from: "configuration",
  }));

/** What the store remembers: ranges that gave an address, gateways of leases, and the subnets of all other leases. */
export function poolsOfStore(snapshot: StoreSnapshot, network?: string): readonly Pool[] {
  const found = noted(snapshot.marks()).filter((note) => network === undefined || note.network === network);
  const byNetwork = new Map<string, { windows: Interval[][]; gateways: Map<string, Ip> }>();
  const knownOf = (name: string) => {
    const known = byNetwork.get(name) ?? { windows: [], gateways: new Map<string, Ip>() };
    byNetwork.set(name, known);
    return known;
  };
  for (const { network: name, windows } of found) knownOf(name).windows.push(windows);
  for (const { windows } of byNetwork.values()) dropOverlapping(windows);
  for (const lease of snapshot.leases(network)) {
    const known = knownOf(lease.owner.network);
    if (lease.gateway !== undefined) known.gateways.set(formatIp(lease.gateway), lease.gateway);
    if (!known.windows.some((windows) => isIn(windows, lease.address.ip))) known.windows.push([subnetOf(lease)]);
  }
  return [...byNetwork]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([name, { windows, gateways }]) =>
      windows.map(
        (set): Pool => ({
          network: name,
          range: set.map(({ first, last }) => `${formatIp(first)}-${formatIp(last)}`).join(","),
          windows: intervalsOf(set),
          gateways: intervalsOf([...gateways.values()].map((ip) => ({ first: ip, last: ip }))),
          excluded: [],
          from: "store",
        }),
      ),
    );
}

interface Note {
  readonly network: string;
  readonly windows: Interval[];
}

/** The allocator's mark for the address it gave last names network and ranges: `last <network> <start-end,…>`. */
function noted(marks: ReadonlyMap<string, string>): readonly Note[] {
  return [...marks.keys()].flatMap((name): readonly Note[] => {
    const [what, network, ranges, ...more] = name.split(" ");
    if (what !== "last" || network === undefined || ranges === undefined || more.length > 0) return [];
    const windows = ranges.split(",").map(windowOf);
    return windows.every((window) => window !== undefined) ? [{ network, windows }] : [];
  });
}

function windowOf(text: string): Interval | undefined {
  const [first, last] = text.split("-").map(parseIp);
  if (first === undefined || last === undefined || first.family !== last.family) return undefined;
  return first.value <= last.value ? { first, last } : undefined;
}

/**
 * After a change of ranges the marks name both versions, and nothing tells which is current; the larger one shows all
 * leases.
 */
function dropOverlapping(sets: Interval[][]): void {
  const bySize = [...sets].sort((a, b) => (countOf(intervalsOf(b)) > countOf(intervalsOf(a)) ? 1 : -1));
  const kept = bySize.filter(
    (set, i) => !bySize.slice(0, i).some((larger) => larger.some((a) => set.some((b) => overlap(a, b)))),
  );
  sets.splice(0, sets.length, ...sets.filter((set) => kept.includes(set)));
}

const isIn = (windows: readonly Interval[], ip: Ip): boolean =>
  windows.some(({ first, last }) => first.family === ip.family && first.value <= ip.value && ip.value <= last.value);

/** The window that a range of this subnet has without further keys. */
function subnetOf({ address }: Lease): Interval {
  const [first, last] = [firstOf(address), lastOf(address)];
  if (last.value - first.value < 3n) return { first, last };
  return { first: plus(first, 1n), last: address.ip.family === 4 ? plus(last, -1n) : last };
}

/** The pool that the address lies in. */
export const poolOf = (pools: readonly Pool[], network: string, ip: Ip): Pool | undefined =>
  pools.find((pool) => pool.network === network && intervalAt(pool.windows, ip) !== undefined);

export const poolText = ({ network, windows }: Pool): string => `${network} ${windows.map(formatInterval).join(",")}`;

/** The pools of a command line at one moment, and what keeps their addresses. */
export interface PoolLook {
  readonly pools: readonly Pool[];
  /** Leases whose addresses are not free, by network and address; of one network where one is named. */
  leases(network?: string): Iterable<Lease>;
  readonly marks: ReadonlyMap<string, string>;
}

/**
 * Uses the ranges of the configuration, else those that the database remembers. Without a database, before a network's
 * first ADD, everything configured is free.
 * @param use answers the exit status
 */
export async function withPools(
  scope: Scope,
  action: string,
  io: TerminalIo,
  use: (look: PoolLook) => number | Promise<number>,
): Promise<number> {
  const { conf, network, dataDir } = scope;
  const unknown = await unknownNetwork(scope, action, io);
  if (unknown !== undefined) return unknown;
  const config = conf === undefined ? undefined : await ipamConfigOf(conf);
  using snapshot = await StoreSnapshot.open(databaseIn(dataDir));
  if (conf === undefined || config === undefined) {
    if (snapshot === undefined) {
      sayMissing(dataDir, action, io);
      return exitStatus.notThere;
    }
    const leases: PoolLook["leases"] = (name = network) => snapshot.kept(Date.now(), name);
    return await use({ pools: poolsOfStore(snapshot, network), leases, marks: snapshot.marks() });
  }
  if (snapshot === undefined) sayNothingGiven(dataDir, io);
  const configured = { network: conf.network, cooldownMs: config.cooldownMs };
  const pools = poolsOfConfig(conf.network, config).filter((pool) => pool.network === network);
  const leases: PoolLook["leases"] = (name = network) => snapshot?.kept(Date.now(), name, configured) ?? [];
  return await use({ pools, leases, marks: snapshot?.marks() ?? new Map() });
}

/** What an address of a pool can be. */
export const addressKinds = ["allocated", "releasing", "cooling", "excluded", "gateway", "free"] as const;
export type AddressKind = (typeof addressKinds)[number];

export type Tally = Readonly<Record<AddressKind, bigint>>;

/** A lease counts before the configuration, which may have changed since. */
export function kindOf(pool: Pool, ip: Ip, state: LeaseState | undefined): AddressKind {
  if (state !== undefined) return state;
  if (intervalAt(pool.gateways, ip) !== undefined) return "gateway";
  return intervalAt(pool.excluded, ip) !== undefined ? "excluded" : "free";
}

/** Counts the addresses of a part of the pool by kind, without visiting each address. */
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

  /** Addresses that can be given out, taken or not, without leases on addresses that were reserved later. */
  get total(): bigint {
    return taken(this.#counts) - this.#onReserved + this.#counts.free;
  }
}

export const taken = (tally: Tally): bigint => tally.allocated + tally.releasing + tally.cooling;

const inside = (runs: Intervals, within: Intervals): Intervals =>
  within.flatMap((window) => {
    // The part of the runs that lies in the window: the window minus what remains of it without the runs.
    const others = without(window, runs);
    return without(window, others);
  });
