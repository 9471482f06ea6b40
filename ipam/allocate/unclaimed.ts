import type { Owner } from "../../shared/cni/types.ts";
import type { Attachment } from "../allocator.ts";
import type { Lease } from "../lease.ts";
import { haveLeases, isNameless } from "../recovery/hold.ts";
import type { Store } from "../store/store.ts";

/** Distinct within a network. */
export const attachmentName = ({ sandboxId, ifname }: Pick<Owner, "sandboxId" | "ifname">): string =>
  `${sandboxId} ${ifname}`;

/** Tells the allocated leases of a network that none of the attachments to keep claims. */
export function unclaimedTest(store: Store, network: string, keep: readonly Attachment[]): (lease: Lease) => boolean {
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
  return ({ state, owner }) =>
    state === "allocated" && !kept.has(attachmentName(owner)) && (!isNameless(owner) || isEverybodyKnown());
}
