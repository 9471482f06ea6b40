import { firstOf, formatIp, type Ip, lastOf, parseIp, plus } from "../../shared/net/ip.ts";
import {
  countOf,
  formatInterval,
  type Interval,
  type Intervals,
  intervalAt,
  intervalsOf,
  overlap,
} from "../config/intervals.ts";
import type { IpamConfig } from "../config/ipam-config.ts";
import { formatRangeSet } from "../config/ranges.ts";
import type { Lease } from "../lease.ts";
import type { StoreSnapshot } from "../store/store-snapshot.ts";

/** The addresses of one range set of a network. */
export interface Pool {
  readonly network: string;
  /** `start-end[,start-end]`. */
  readonly range: string;
  readonly windows: Intervals;
  /** Those of the network; they need not lie in the windows. */
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

/** Where ranges have changed both versions are noted, and nothing says which holds: the larger one shows all leases. */
function dropOverlapping(sets: Interval[][]): void {
  const bySize = [...sets].sort((a, b) => (countOf(intervalsOf(b)) > countOf(intervalsOf(a)) ? 1 : -1));
  const kept = bySize.filter(
    (set, i) => !bySize.slice(0, i).some((larger) => larger.some((a) => set.some((b) => overlap(a, b)))),
  );
  sets.splice(0, sets.length, ...sets.filter((set) => kept.includes(set)));
}

const isIn = (windows: readonly Interval[], ip: Ip): boolean =>
  windows.some(({ first, last }) => first.family === ip.family && first.value <= ip.value && ip.value <= last.value);

/** As a range of this subnet without further keys would be. */
function subnetOf({ address }: Lease): Interval {
  const [first, last] = [firstOf(address), lastOf(address)];
  if (last.value - first.value < 3n) return { first, last };
  return { first: plus(first, 1n), last: address.ip.family === 4 ? plus(last, -1n) : last };
}

/** Where the lease's address lies. */
export const poolOf = (pools: readonly Pool[], network: string, ip: Ip): Pool | undefined =>
  pools.find((pool) => pool.network === network && intervalAt(pool.windows, ip) !== undefined);

export const poolText = ({ network, windows }: Pool): string => `${network} ${windows.map(formatInterval).join(",")}`;
