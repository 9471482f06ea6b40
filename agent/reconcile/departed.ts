import { ownerKey, sameOwner } from "../../shared/cni/owner-key.ts";
import type { Owner } from "../../shared/cni/types.ts";
import type { AgentParts } from "./agent-parts.ts";

/** How long whoever tidies up waits for a call of the same container before it comes back later. */
const laneWaitMs = 5_000;

/** Every owner that has left and is not finished: with a `releasing` lease, a departure on record, or an interface left over. */
export function departedOwners(parts: Pick<AgentParts, "allocator" | "leftover">, network?: string): Owner[] {
  const owners = new Map<string, Owner>();
  for (const [key, owner] of parts.leftover)
    if (network === undefined || owner.network === network) owners.set(key, owner);
  for (const lease of parts.allocator.list(network)) {
    if (lease.state === "releasing") owners.set(ownerKey(lease.owner), lease.owner);
  }
  for (const owner of parts.allocator.pendingDetaches()) {
    if (network === undefined || owner.network === network) owners.set(ownerKey(owner), owner);
  }
  return [...owners.values()];
}

/**
 * Ends what an owner's DEL, or a plugin that gave up, left undone: interface away, addresses to cool.
 * What it acts on is read inside the owner's lane, so a sandbox that was added again meanwhile keeps
 * its interface. Answers whether anything was finished.
 */
export function finishDeparted(parts: AgentParts, owner: Owner): Promise<boolean> {
  const options = { what: `tidying up after "${owner.sandboxId}"`, timeoutMs: laneWaitMs };
  return parts.lanes.run(ownerKey(owner), options, async () => {
    const key = ownerKey(owner);
    const left = parts.allocator.releasing(owner);
    const held = parts.allocator.find(owner).length > 0;
    if (parts.allocator.pendingDetaches().some((other) => sameOwner(other, owner))) {
      // A DEL that is on record came after the last ADD, which would have struck it off. A lease that
      // is still held is one that the agent gave out itself.
      if (held) parts.allocator.release(owner, "releasing");
    } else if (held) {
      // Added again. Once its new wiring stands, nothing uses the earlier addresses any more.
      parts.leftover.delete(key);
      if (!parts.attached.has(key)) return false;
      for (const lease of left) parts.allocator.finishRelease(lease);
      return left.length > 0;
    } else if (left.length === 0 && !parts.leftover.has(key)) {
      return false;
    }
    await detachAndEnd(parts, owner);
    return true;
  });
}

/** Inside the owner's lane: unwires, and only then lets the addresses cool. */
export async function detachAndEnd(parts: AgentParts, owner: Owner): Promise<void> {
  const had = parts.allocator.uncooled(owner);
  await parts.dataPath.detach(owner);
  parts.attached.delete(ownerKey(owner));
  parts.leftover.delete(ownerKey(owner));
  parts.allocator.endAttachment(owner, had);
}
