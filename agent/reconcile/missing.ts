import { ownerKey } from "../../shared/cni/owner-key.ts";
import type { Missing } from "../datapath/datapath.ts";
import type { AgentParts } from "./agent-context.ts";
import { departedOwners } from "./pending-detach.ts";

/** Interfaces that are gone although nobody has sent a DEL for them. */
export function missingOf(parts: AgentParts): readonly Missing[] {
  const missing = parts.dataPath.missing?.() ?? [];
  if (missing.length === 0) return missing;
  const departed = new Set(departedOwners(parts).map(ownerKey));
  return missing.filter((one) => !departed.has(ownerKey(one.owner)) && isHeld(parts, one));
}

/** A lease that another IPAM plugin keeps is held until a DEL says otherwise. */
const isHeld = (parts: AgentParts, { owner, ownLease }: Missing): boolean =>
  !ownLease || parts.allocator.find(owner).length > 0;

/** Has the data path make it again, if it is still missing in its owner's turn. Answers whether it was. */
export function remakeMissing(parts: AgentParts, missing: Missing): Promise<boolean> {
  const { owner, ownLease } = missing;
  return parts.lanes.run(ownerKey(owner), { what: `making the interface of "${owner.sandboxId}" again` }, async () => {
    if (!missingOf(parts).some((each) => ownerKey(each.owner) === ownerKey(owner))) return false;
    const addresses = ownLease ? parts.allocator.find(owner).map(({ address }) => address.ip) : undefined;
    if ((await parts.dataPath.remake?.(missing, addresses)) !== true) return false;
    parts.attached.set(ownerKey(owner), parts.attached.get(ownerKey(owner)) ?? 0);
    return true;
  });
}
