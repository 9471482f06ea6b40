import type { Owner } from "../../shared/cni/types.ts";
import type { Lease } from "../lease.ts";
import type { Store } from "../store/store.ts";

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
