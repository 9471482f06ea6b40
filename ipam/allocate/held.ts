import type { Owner, Pod } from "../../shared/cni/types.ts";
import type { RangeSet } from "../config/ranges.ts";
import type { Lease } from "../lease.ts";
import type { Store } from "../store/store.ts";
import { hasSubnet, subnetOf } from "./subnet.ts";

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
