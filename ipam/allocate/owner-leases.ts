import type { Owner, Pod } from "../../shared/cni/types.ts";
import { bitsOf, type Ip } from "../../shared/net/ip.ts";
import { type RangeSet, rangeOf } from "../config/ranges.ts";
import type { Lease } from "../lease.ts";
import type { Store } from "../store/store.ts";
import { interfaceMark } from "./marks.ts";

/**
 * The owner's leases in any state. Where it has none, those that host-local noted without an interface's name: they are
 * any interface's of the sandbox.
 */
export function leasesOf(store: Store, owner: Owner): readonly Lease[] {
  const own = store.select({ by: "owner", owner });
  return own.length > 0 ? own : store.select({ by: "owner", owner: { ...owner, ifname: "" } });
}

/** In the order of their range sets. */
export const allocatedOf = (leases: readonly Lease[]): readonly Lease[] =>
  leases
    .filter(({ state }) => state === "allocated")
    .sort((a, b) => a.rangeSet - b.rangeSet || a.generation - b.generation);

/**
 * The leases as leases of this boot, with the subnet and the pod where they did not say them: one that was made anew,
 * or taken over from host-local, does not. What is right already stays the same object.
 */
export const confirm = (
  held: readonly Lease[],
  rangeSets: readonly RangeSet[],
  bootId: string,
  pod: Pod | undefined,
): readonly Lease[] =>
  held.map((lease) => {
    const subnet = hasSubnet(lease) ? undefined : subnetOf(rangeSets, lease.address.ip);
    const named = pod === undefined || lease.pod !== undefined ? undefined : { pod };
    const isSame = lease.bootId === bootId && subnet === undefined && named === undefined;
    return isSame ? lease : { ...lease, ...subnet, ...named, bootId };
  });

/** A lease that was taken over without its network's ranges has the address alone; no range is that small. */
export const hasSubnet = ({ address }: Lease): boolean => address.prefix < bitsOf(address.ip.family);

/** What the ranges say about an address; `undefined` where none has it. */
export function subnetOf(
  sets: readonly RangeSet[],
  ip: Ip,
): Pick<Lease, "rangeSet" | "address" | "gateway"> | undefined {
  for (const [rangeSet, set] of sets.entries()) {
    const range = rangeOf(set, ip);
    if (range !== undefined) return { rangeSet, address: { ip, prefix: range.subnet.prefix }, gateway: range.gateway };
  }
  return undefined;
}

/**
 * Which leases the agent made an interface for, or was about to. A lease that a program or a person took without one
 * looks the same where no interface stands, and must not be taken back for want of it.
 *
 * The mark's value is the generation of the owner's latest lease then: a Pipette that knows no such marks may end a
 * lease and leave its mark, and a later lease of the owner has a higher one.
 */
export function noteInterface(store: Store, owner: Owner, leases: readonly Lease[]): void {
  const value = String(Math.max(...leases.map(({ generation }) => generation)));
  if (leases.length > 0 && store.mark(interfaceMark(owner)) !== value) store.setMark(interfaceMark(owner), value);
}

export const hasInterface = (store: Store, { owner, generation }: Lease): boolean =>
  generation <= Number(store.mark(interfaceMark(owner)) ?? "0");

/** To be called when a lease is left: who comes again is wired again. */
export function forgetInterface(store: Store, { owner }: Lease): void {
  store.setMark(interfaceMark(owner), undefined);
}
