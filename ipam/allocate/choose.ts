import type { Owner, Pod } from "../../shared/cni/types.ts";
import { formatIp, type Ip, parseIp, sameIp } from "../../shared/net/ip.ts";
import { intervalAt } from "../config/intervals.ts";
import type { IpamConfig } from "../config/ipam-config.ts";
import { type RangeSet, rangeOf } from "../config/ranges.ts";
import type { Lease } from "../lease.ts";
import type { Store } from "../store/store.ts";
import { cursorMark, inheritedCursorMark } from "./marks.ts";
import { longestCooling, nextAddress } from "./pick.ts";
import { exhausted, isExcluded, isGateway, isTaken, isWithheld, notInRanges } from "./refusals.ts";
import { lastAddress } from "./sticky.ts";
import { type RangeUsage, usageOf } from "./usage.ts";

/** The owner that asks for addresses, and what is known of it. */
export interface Applicant {
  readonly owner: Owner;
  readonly pod: Pod | undefined;
  /** Cooling leases of this same owner that nobody got since. */
  readonly left: readonly Lease[];
  /** The time of the request, in milliseconds since 1970. */
  readonly nowMs: number;
}

/**
 * The address of this range set for the applicant: the one asked for, else the one that it had, else the
 * next in turn, else the one that cools longest.
 * @throws {CniError} code 101 where there is none, or the one asked for cannot be given; 11 where it soon can
 */
export function chooseAddress(
  store: Store,
  applicant: Applicant,
  set: RangeSet,
  config: IpamConfig,
  asked: Ip | undefined,
): Ip {
  const { owner, pod, left, nowMs } = applicant;
  if (asked !== undefined) {
    requireGivable(store, applicant, set, config, asked);
    store.setMark(cursorMark(owner.network, set), formatIp(asked));
    return asked;
  }
  const before = left.find(({ address: { ip } }) => rangeOf(set, ip) !== undefined && !isReserved(config, ip));
  const own = before?.address.ip ?? lastAddress(store, owner, pod, set, config);
  return own ?? inTurn(store, owner.network, set, config, nowMs);
}

function inTurn(store: Store, network: string, set: RangeSet, config: IpamConfig, nowMs: number): Ip {
  const mark = cursorMark(network, set);
  const last = store.mark(mark) ?? store.mark(inheritedCursorMark(network, config.rangeSets.indexOf(set))) ?? "";
  const next = nextAddress(store, network, set, config.reserved, parseIp(last));
  const ip = next ?? longestCooling(store, network, set, config.reserved)?.address.ip;
  if (ip === undefined) throw exhausted(store, network, set, config, nowMs);
  store.setMark(mark, formatIp(ip));
  return ip;
}

const isReserved = ({ reserved }: IpamConfig, ip: Ip): boolean => intervalAt(reserved, ip) !== undefined;

function requireGivable(store: Store, applicant: Applicant, set: RangeSet, config: IpamConfig, ip: Ip): void {
  const usage = (): RangeUsage => usageOf(store, applicant.owner.network, set, config, applicant.nowMs);
  if (intervalAt(config.gateways, ip) !== undefined) throw isGateway(ip, usage());
  const excluded = intervalAt(config.excluded, ip);
  if (excluded !== undefined) throw isExcluded(ip, excluded, usage());
  const [lease] = store.select({ by: "address", network: applicant.owner.network, ip });
  const own = applicant.left.some((candidate) => sameIp(candidate.address.ip, ip));
  // A request names this very address, so it does not have to cool down first.
  if (lease !== undefined && lease.state !== "cooling" && !own) throw isTaken(lease, usage());
  if (config.withheld !== undefined && intervalAt(config.withheld, ip) !== undefined) throw isWithheld(ip, usage());
}

/**
 * Each range set takes the first request that lies in it.
 * @throws {CniError} code 101 where one is left over
 */
export function assignRequests({ rangeSets, requested }: IpamConfig): ReadonlyMap<RangeSet, Ip> {
  const assigned = new Map<RangeSet, Ip>();
  const left = requested.filter((ip) => {
    const set = rangeSets.find((candidate) => !assigned.has(candidate) && rangeOf(candidate, ip) !== undefined);
    if (set !== undefined) assigned.set(set, ip);
    return set === undefined;
  });
  if (left.length > 0) throw notInRanges(left, rangeSets);
  return assigned;
}
