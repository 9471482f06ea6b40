import { ownerKey } from "../../shared/cni/owner-key.ts";
import type { Missing } from "../datapath/datapath.ts";
import type { AgentContext } from "./agent-context.ts";
import { pendingDetaches } from "./pending-detach.ts";

/** Interfaces that are gone although nobody has sent a DEL for them. */
export function missingOf(context: AgentContext): readonly Missing[] {
  const missing = context.dataPath.missing?.() ?? [];
  if (missing.length === 0) return missing;
  const departed = new Set(pendingDetaches(context).map(ownerKey));
  return missing.filter((one) => !departed.has(ownerKey(one.owner)) && isHeld(context, one));
}

/** A lease that another IPAM plugin keeps is held until a DEL says otherwise. */
const isHeld = (context: AgentContext, { owner, ownLease }: Missing): boolean =>
  !ownLease || context.allocator.find(owner).length > 0;

/** Has the data path make it again, if it is still missing in its owner's turn. Answers whether it was. */
export function remakeMissing(context: AgentContext, missing: Missing): Promise<boolean> {
  const { owner, ownLease } = missing;
  return context.mutex.run(
    ownerKey(owner),
    { what: `making the interface of "${owner.sandboxId}" again` },
    async () => {
      if (!missingOf(context).some((each) => ownerKey(each.owner) === ownerKey(owner))) return false;
      const addresses = ownLease ? context.allocator.find(owner).map(({ address }) => address.ip) : undefined;
      if ((await context.dataPath.remake?.(missing, addresses)) !== true) return false;
      context.lastAddAt.set(ownerKey(owner), context.lastAddAt.get(ownerKey(owner)) ?? 0);
      return true;
    },
  );
}
