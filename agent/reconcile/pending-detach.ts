import { ownerKey } from "../../shared/cni/owner-key.ts";
import type { Owner } from "../../shared/cni/types.ts";
import type { AgentContext } from "./agent-context.ts";
import { type Decision, keep, type OwnerRecord, reconcileOwner } from "./reconcile-owner.ts";

/** How long to wait for a call of the same container; the janitor comes back later. */
const maxWaitMs = 5_000;

/** Every owner that has left and is not finished: with a `releasing` lease, a DEL on record, or an interface to clean up. */
export function pendingDetaches(
  { allocator, pendingCleanup }: Pick<AgentContext, "allocator" | "pendingCleanup">,
  network?: string,
): Owner[] {
  const owners = new Map<string, Owner>();
  for (const [key, owner] of pendingCleanup)
    if (network === undefined || owner.network === network) owners.set(key, owner);
  for (const lease of allocator.list(network)) {
    if (lease.state === "releasing") owners.set(ownerKey(lease.owner), lease.owner);
  }
  for (const owner of allocator.departures()) {
    if (network === undefined || owner.network === network) owners.set(ownerKey(owner), owner);
  }
  return [...owners.values()];
}

/**
 * Ends what an owner's DEL, or a plugin that gave up, left undone: interface away, addresses to cool. A sandbox that was
 * added again meanwhile keeps its interface. Answers whether anything was finished.
 */
export async function finishPendingDetach(context: AgentContext, owner: Owner): Promise<boolean> {
  const what = `tidying up after "${owner.sandboxId}"`;
  return (await reconcileOwner(context, { owner, what, timeoutMs: maxWaitMs, decide })) !== undefined;
}

function decide({ leases, releasing, hasPendingDetach, needsCleanup, lastAddAt }: OwnerRecord): Decision {
  // A DEL that is on record came after the last ADD, which would have struck it off. A lease that is still held is one
  // that the agent gave out itself.
  if (hasPendingDetach) return { t: "detach", first: "release" };
  // Once the new wiring stands, nothing uses the earlier addresses any more.
  if (leases.length > 0) return { t: "added again", cool: lastAddAt === undefined ? [] : releasing };
  return releasing.length > 0 || needsCleanup ? { t: "detach" } : keep;
}
