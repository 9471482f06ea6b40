import { podTitle } from "../../shared/cni/pod-name.ts";
import type { Owner } from "../../shared/cni/types.ts";
import { CniCode, CniError } from "../../shared/errors.ts";
import { formatIp, type Ip } from "../../shared/net/ip.ts";
import { formatInterval, type Interval } from "../config/intervals.ts";
import type { IpamConfig } from "../config/ipam-config.ts";
import { formatRangeSet, type RangeSet } from "../config/ranges.ts";
import type { Lease } from "../lease.ts";
import type { Store } from "../store/store.ts";
import { lasting, type RangeUsage, usageOf, withheldIn } from "./usage.ts";

/**
 * The errors for an address that cannot be given. Each names the range, its numbers, and who holds the requested
 * address.
 */

export function exhausted(store: Store, network: string, set: RangeSet, config: IpamConfig, nowMs: number): CniError {
  const { gateways: gatewayRuns, cooldownMs } = config;
  const reservations = { gateways: gatewayRuns, cooldownMs, reserved: lasting(config) };
  const { range, total, used, releasing, cooling, gateways, excluded } = usageOf(
    store,
    network,
    set,
    reservations,
    nowMs,
  );
  const withheld = withheldIn(store, network, set, config);
  const held = withheld === 0 ? "" : `, ${withheld} on interfaces without a lease`;
  const reserved = `${gateways} for gateways, ${excluded} excluded${held}`;
  const numbers = `${used - releasing} allocated, ${releasing} releasing, ${cooling} cooling; besides, ${reserved}`;
  return refused(
    `range set "${range}" of network "${network}" has 0 of ${total} addresses free`,
    "at least 1",
    `${numbers}; "pipette ipam list --network ${network}" shows who has them: end pods, or give the node more addresses`,
  );
}

export function isGateway(ip: Ip, usage: RangeUsage): CniError {
  return refused(
    `the requested "${formatIp(ip)}" is a gateway`,
    `another address of range set "${usage.range}"`,
    freeOf(usage),
  );
}

export function isExcluded(ip: Ip, by: Interval, usage: RangeUsage): CniError {
  return refused(
    `the requested "${formatIp(ip)}" is excluded by the configuration ("${formatInterval(by)}")`,
    `another address of range set "${usage.range}"`,
    freeOf(usage),
  );
}

export function isTaken(lease: Lease, usage: RangeUsage): CniError {
  const wanted = `a free address of range set "${usage.range}"`;
  const details = freeOf(usage);
  if (lease.state === "allocated")
    return refused(`the requested address is taken: ${holderOf(lease)}`, wanted, details);
  // `releasing` ends by itself and soon, when the agent removes the interface, so trying again helps.
  const is = `the requested address is about to be free: ${holderOf(lease)}`;
  return new CniError(CniCode.tryAgainLater, `Cannot allocate an address: ${is}, wanted ${wanted}`, { details });
}

/** An interface on the node has the address. It may be about to go, so trying again can help. */
export function isWithheld(ip: Ip, usage: RangeUsage): CniError {
  const is = `the requested "${formatIp(ip)}" stands on an interface`;
  const wanted = `a free address of range set "${usage.range}"`;
  const details = freeOf(usage);
  return new CniError(CniCode.tryAgainLater, `Cannot allocate an address: ${is}, wanted ${wanted}`, { details });
}

const freeOf = ({ free, total, cooling }: RangeUsage): string =>
  `${free} of ${total} addresses free, ${cooling} cooling`;

export function notInRanges(ips: readonly Ip[], sets: readonly RangeSet[]): CniError {
  const asked = ips.map((ip) => `"${formatIp(ip)}"`).join(", ");
  const wanted = sets.map((set) => `"${formatRangeSet(set)}"`).join(", ");
  return refused(`there is no range set left for the requested ${asked}`, `one address at most for each of ${wanted}`);
}

export function holdsOthers(owner: Owner, leases: readonly Lease[], asked: Ip): CniError {
  const held = leases.map((lease) => `"${formatIp(lease.address.ip)}"`).join(", ");
  return refused(
    `sandbox "${owner.sandboxId}" already holds ${held} for "${owner.ifname}" and asks for "${formatIp(asked)}"`,
    "the same request as before, or DEL first",
  );
}

function refused(is: string, wanted: string, details?: string): CniError {
  return new CniError(CniCode.ipamFailure, `Cannot allocate an address: ${is}, wanted ${wanted}`, { details });
}

function holderOf({ owner, pod, state, address, allocatedAtMs }: Lease): string {
  const by = `sandbox "${owner.sandboxId}" (${owner.ifname})`;
  const forPod = pod === undefined ? "" : ` of pod "${podTitle(pod)}"`;
  return `"${formatIp(address.ip)}", ${state}, ${by}${forPod}, since ${new Date(allocatedAtMs).toISOString()}`;
}
