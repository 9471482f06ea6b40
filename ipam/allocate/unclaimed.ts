import { ownerKey } from "../../shared/cni/owner-key.ts";
import type { Attachment } from "../../shared/cni/types.ts";
import type { Lease } from "../lease.ts";
import { haveLeases, isNameless } from "../recovery/integrity.ts";
import type { Store } from "../store/store.ts";

/** The age of a list of attachments, in milliseconds since 1970. */
interface ListTimes {
  readonly sinceMs: number;
  /** The current time: leases are read a page at a time, and other processes allocate meanwhile. */
  now(): number;
}

/**
 * A test for allocated leases of a network that belong to none of the attachments to keep. A lease that is younger than
 * the list cannot be on it, so it is kept.
 */
export function unclaimedTest(
  store: Store,
  network: string,
  keep: readonly Attachment[],
  { sinceMs, now }: ListTimes,
): (lease: Lease) => boolean {
  // After the clock was set back, old leases have times in the future.
  const cameSince = ({ allocatedAtMs: at }: Lease): boolean => at >= sinceMs && at <= now();
  // Without an interface's name a lease stays as long as any of the sandbox does.
  const names = keep.flatMap(({ containerId, ifname }) =>
    [ifname, ""].map((name) => ownerKey({ network, sandboxId: containerId, ifname: name })),
  );
  const kept = new Set(names);
  let complete: boolean | undefined;
  const isEverybodyKnown = (): boolean => {
    complete ??= haveLeases(store, network, keep);
    return complete;
  };
  return (lease) => {
    const { state, owner } = lease;
    if (state !== "allocated" || kept.has(ownerKey(owner)) || cameSince(lease)) return false;
    return !isNameless(owner) || isEverybodyKnown();
  };
}
