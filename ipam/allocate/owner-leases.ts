import type { Owner, Pod } from "../../shared/cni/types.ts";
import { bitsOf, type Ip } from "../../shared/net/ip.ts";
import { type RangeSet, rangeOf } from "../config/ranges.ts";
import type { Lease } from "../lease.ts";
import type { Store } from "../store/store.ts";
import { interfaceMark } from "./marks.ts";

/**
 * The owner's leases in any state. If it has none, those taken over from host-local without an interface name, which
 * belong to any interface of the sandbox.
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
 * The leases as leases of this boot, with subnet and pod filled in where they lack them, as recovered leases and those
 * taken over from host-local do. A lease that needs no change stays the same object.
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

/** A lease that was taken over without its network's ranges has a full-length prefix, which no range has. */
export const hasSubnet = ({ address }: Lease): boolean => address.prefix < bitsOf(address.ip.family);

/** Subnet and gateway of the range that holds the address; `undefined` where none does. */
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
 * Marks leases for which the agent made an interface, or was about to. A lease taken by a program or a person has no
 * interface either, and must not be ended because none is found.
 *
 * The mark's value is the generation of the owner's latest lease at that time. An older version of Pipette may end a
 * lease and leave the mark behind; a later lease of the owner has a higher generation, so the mark does not count for
 * it.
 */
export function noteInterface(store: Store, owner: Owner, leases: readonly Lease[]): void {
  const value = String(Math.max(...leases.map(({ generation }) => generation)));
  if (leases.length > 0 && store.mark(interfaceMark(owner)) !== value) store.setMark(interfaceMark(owner), value);
}

export const hasInterface = (store: Store, { owner, generation }: Lease): boolean =>
  generation <= Number(store.mark(interfaceMark(owner)) ?? "0");

/** To be called when a lease is released: a later ADD sets the mark again. */
export function forgetInterface(store: Store, { owner }: Lease): void {
  store.setMark(interfaceMark(owner), undefined);
}
