import { type Ip, plus } from "../../shared/net/ip.ts";
import { countOf, type Interval, type Intervals, intervalsOf, without } from "../config/intervals.ts";
import type { IpamConfig } from "../config/ipam-config.ts";
import { formatRangeSet, type RangeSet, rangeOf } from "../config/ranges.ts";
import type { Store } from "../store/store.ts";
import { cooledBy } from "./cooldown.ts";

/**
 * Numbers of one range set. `total = used + cooling + free`; the addresses of its windows are `total + gateways +
 * excluded`. A lease on an address that was reserved later counts only as gateway or excluded.
 */
export interface RangeUsage {
  /** `start-end[,start-end]`. */
  readonly range: string;
  /** Addresses that can be given out. */
  readonly total: bigint;
  /** Allocated or releasing. */
  readonly used: number;
  /** Those of the used ones whose interface may still exist. */
  readonly releasing: number;
  readonly cooling: number;
  readonly free: bigint;
  readonly gateways: bigint;
  /** By the configuration's `exclude`; a gateway among them counts as a gateway. */
  readonly excluded: bigint;
}

/** The parts of a configuration that keep addresses from pods. */
export type Reservations = Pick<IpamConfig, "gateways" | "reserved" | "cooldownMs">;

/** As `reserved`, without addresses that are withheld only at this moment. */
export const lasting = ({ gateways, excluded }: IpamConfig): Intervals => intervalsOf([...gateways, ...excluded]);

/** Withheld addresses of the set that have no lease. */
export function withheldIn(store: Store, network: string, set: RangeSet, { withheld }: IpamConfig): number {
  return (withheld ?? [])
    .flatMap(({ first, last }) =>
      Array.from({ length: Number(last.value - first.value) + 1 }, (_, i) => plus(first, BigInt(i))),
    )
    .filter((ip) => rangeOf(set, ip) !== undefined)
    .filter((ip) => store.select({ by: "address", network, ip }).every(({ state }) => state === "cooling")).length;
}

export function usageOf(
  store: Store,
  network: string,
  set: RangeSet,
  { gateways, reserved, cooldownMs }: Reservations,
  nowMs: number,
): RangeUsage {
  const windows = set.map(({ start, end }): Interval => ({ first: start, last: end }));
  const open = leftOf(windows, reserved);
  const all = countOf(windows);
  const total = countOf(open);
  const besidesGateways = countOf(leftOf(windows, gateways));
  const counts = open.map(({ first, last }) => store.count(network, first, last, cooledBy(nowMs, cooldownMs)));
  const taken = counts.reduce((sum, count) => sum + count.taken, 0n);
  const cooling = counts.reduce((sum, count) => sum + count.cooling, 0);
  const releasing = counts.reduce((sum, count) => sum + count.releasing, 0);
  return {
    range: formatRangeSet(set),
    total,
    used: Number(taken) - cooling,
    releasing,
    cooling,
    free: total - taken,
    gateways: all - besidesGateways,
    excluded: besidesGateways - total,
  };
}

const leftOf = (windows: readonly Interval[], reserved: Intervals): Intervals =>
  windows.flatMap((window) => without(window, reserved));

/** `config` for one allocation that does not give out these addresses; an existing lease on one stays. */
export function withholding(config: IpamConfig, ips: readonly Ip[]): IpamConfig {
  if (ips.length === 0) return config;
  const withheld: Intervals = intervalsOf(ips.map((ip) => ({ first: ip, last: ip })));
  return { ...config, withheld, reserved: intervalsOf([...config.reserved, ...withheld]) };
}
