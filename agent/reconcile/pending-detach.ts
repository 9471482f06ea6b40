import { ownerKey } from "../../shared/cni/owner-key.ts";
import type { Owner } from "../../shared/cni/types.ts";
import type { AgentContext } from "./agent-context.ts";
import { type Decision, keep, type OwnerRecord, reconcileOwner } from "./reconcile-owner.ts";

/** How long to wait for a call of the same container; the janitor tries again later. */
const maxWaitMs = 5_000;

/** Every owner whose detach is unfinished: with a `releasing` lease, a recorded DEL, or an interface to clean up. */
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
  for (const owner of allocator.pendingDetaches()) {
    if (network === undefined || owner.network === network) owners.set(ownerKey(owner), owner);
  }
  return [...owners.values()];
}

/**
 * Finishes what an owner's DEL, or a plugin that gave up, left undone: removes the interface and lets the addresses
 * cool. A sandbox that was added again meanwhile keeps its interface. Answers whether anything was done.
 */
export async function finishPendingDetach(context: AgentContext, owner: Owner): Promise<boolean> {
  const what = `tidying up after "${owner.sandboxId}"`;
  return (await reconcileOwner(context, { owner, what, timeoutMs: maxWaitMs, decide })) !== undefined;
}

function decide({ leases, releasing, hasPendingDetach, needsCleanup, lastAddAt }: OwnerRecord): Decision {
  // A recorded DEL came after the last ADD, which would have deleted the record. A lease that is still held was
  // allocated by the agent itself.
  if (hasPendingDetach) return { t: "detach", first: "release" };
  // Once the new wiring stands, nothing uses the earlier addresses any more.
  if (leases.length > 0) return { t: "added again", cool: lastAddAt === undefined ? [] : releasing };
  return releasing.length > 0 || needsCleanup ? { t: "detach" } : keep;
}
