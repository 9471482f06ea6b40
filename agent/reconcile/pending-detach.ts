import { ownerKey, sameOwner } from "../../shared/cni/owner-key.ts";
import type { Owner } from "../../shared/cni/types.ts";
import type { AgentContext } from "./agent-context.ts";

/** How long whoever tidies up waits for a call of the same container before it comes back later. */
const laneWaitMs = 5_000;

/** Every owner that has left and is not finished: with a `releasing` lease, a departure on record, or an interface left over. */
export function pendingDetaches(
  context: Pick<AgentContext, "allocator" | "pendingCleanup">,
  network?: string,
): Owner[] {
  const owners = new Map<string, Owner>();
  for (const [key, owner] of context.pendingCleanup)
    if (network === undefined || owner.network === network) owners.set(key, owner);
  for (const lease of context.allocator.list(network)) {
    if (lease.state === "releasing") owners.set(ownerKey(lease.owner), lease.owner);
  }
  for (const owner of context.allocator.departures()) {
    if (network === undefined || owner.network === network) owners.set(ownerKey(owner), owner);
  }
  return [...owners.values()];
}

/**
 * Ends what an owner's DEL, or a plugin that gave up, left undone: interface away, addresses to cool.
 * What it acts on is read inside the owner's lane, so a sandbox that was added again meanwhile keeps
 * its interface. Answers whether anything was finished.
 */
export function finishPendingDetach(context: AgentContext, owner: Owner): Promise<boolean> {
  const options = { what: `tidying up after "${owner.sandboxId}"`, timeoutMs: laneWaitMs };
  return context.mutex.run(ownerKey(owner), options, async () => {
    const key = ownerKey(owner);
    const left = context.allocator.releasing(owner);
    const held = context.allocator.find(owner).length > 0;
    if (context.allocator.departures().some((other) => sameOwner(other, owner))) {
      // A DEL that is on record came after the last ADD, which would have struck it off. A lease that
      // is still held is one that the agent gave out itself.
      if (held) context.allocator.release(owner, "releasing");
    } else if (held) {
      // Added again. Once its new wiring stands, nothing uses the earlier addresses any more.
      context.pendingCleanup.delete(key);
      if (!context.lastAddAt.has(key)) return false;
      for (const lease of left) context.allocator.settle(lease);
      return left.length > 0;
    } else if (left.length === 0 && !context.pendingCleanup.has(key)) {
      return false;
    }
    await detachAndEnd(context, owner);
    return true;
  });
}

/** Inside the owner's lane: unwires, and only then lets the addresses cool. */
export async function detachAndEnd(context: AgentContext, owner: Owner): Promise<void> {
  const had = context.allocator.standing(owner);
  await context.dataPath.detach(owner);
  context.lastAddAt.delete(ownerKey(owner));
  context.pendingCleanup.delete(ownerKey(owner));
  context.allocator.end(owner, had);
}
