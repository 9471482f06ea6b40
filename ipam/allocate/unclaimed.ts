import type { Attachment, Owner } from "../../shared/cni/types.ts";
import type { Lease } from "../lease.ts";
import { haveLeases, isNameless } from "../recovery/hold.ts";
import type { Store } from "../store/store.ts";

/** Distinct within a network. */
export const attachmentName = ({ sandboxId, ifname }: Pick<Owner, "sandboxId" | "ifname">): string =>
  `${sandboxId} ${ifname}`;

/** Since when a list of attachments is known, in milliseconds since 1970. */
interface ListTimes {
  readonly sinceMs: number;
  /** As it goes on: leases are read a page at a time, and others give out more meanwhile. */
  now(): number;
}

/**
 * Tells the allocated leases of a network that none of the attachments to keep claims. A lease that is younger than the
 * list cannot be on it, so nothing is known of its owner.
 */
export function unclaimedTest(
  store: Store,
  network: string,
  keep: readonly Attachment[],
  { sinceMs, now }: ListTimes,
): (lease: Lease) => boolean {
  // Where the clock was set back leases of long ago lie ahead.
  const cameSince = ({ allocatedAtMs: at }: Lease): boolean => at >= sinceMs && at <= now();
  // Without an interface's name a lease stays as long as any of the sandbox does.
  const names = keep.flatMap(({ containerId, ifname }) =>
    [ifname, ""].map((name) => attachmentName({ sandboxId: containerId, ifname: name })),
  );
  const kept = new Set(names);
  let complete: boolean | undefined;
  const isEverybodyKnown = (): boolean => {
    complete ??= haveLeases(store, network, keep);
    return complete;
  };
  return (lease) => {
    const { state, owner } = lease;
    if (state !== "allocated" || kept.has(attachmentName(owner)) || cameSince(lease)) return false;
    return !isNameless(owner) || isEverybodyKnown();
  };
}
