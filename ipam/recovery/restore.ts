import { sameOwner } from "../../shared/cni/owner-key.ts";
import type { Owner } from "../../shared/cni/types.ts";
import type { Cidr } from "../../shared/net/ip.ts";
import { generationMark } from "../allocate/marks.ts";
import { subnetOf } from "../allocate/subnet.ts";
import type { RangeSet } from "../config/ranges.ts";
import type { Lease } from "../lease.ts";
import type { Store } from "../store/store.ts";

/** An owner that is known to use addresses, whatever the store says. */
export interface AddressesInUse {
  readonly owner: Owner;
  readonly addresses: readonly Cidr[];
}

export interface RestoreContext {
  readonly rangeSets: readonly RangeSet[];
  readonly bootId: string;
  /** Milliseconds since 1970. */
  now(): number;
  /** Whether another owner uses its addresses too. */
  isInUse(owner: Owner): boolean;
}

export interface Restored {
  /** Leases that the owner has got back. */
  readonly leases: readonly Lease[];
  /** Leases of others who use the owner's address as well: they stay. */
  readonly clashes: readonly Lease[];
}

/**
 * Gives the owner the leases of the addresses that it uses, where they were lost. A lease that somebody else got for
 * one of them meanwhile and does not use is ended: what stands counts.
 */
export function restoreLeases(store: Store, { owner, addresses }: AddressesInUse, context: RestoreContext): Restored {
  const leases: Lease[] = [];
  const clashes: Lease[] = [];
  for (const { ip, prefix } of addresses) {
    const [now] = store.select({ by: "address", network: owner.network, ip });
    const isOwn = now !== undefined && sameOwner(now.owner, owner);
    if (isOwn && now.state !== "cooling") continue;
    if (now !== undefined && !isOwn && now.state !== "cooling" && context.isInUse(now.owner)) {
      clashes.push(now);
      continue;
    }
    const generation = Number(store.mark(generationMark) ?? "0") + 1;
    const lease: Lease = {
      owner,
      rangeSet: 0,
      address: { ip, prefix },
      ...subnetOf(context.rangeSets, ip),
      state: "allocated",
      bootId: context.bootId,
      generation,
      ...(isOwn && now.pod !== undefined ? { pod: now.pod } : {}),
      allocatedAtMs: context.now(),
    };
    store.put(lease);
    store.setMark(generationMark, String(generation));
    leases.push(lease);
  }
  return { leases, clashes };
}
