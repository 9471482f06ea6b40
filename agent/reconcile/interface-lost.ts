import { isStaleLease, type Lease } from "../../ipam/mod.ts";
import { ownerKey } from "../../shared/cni/owner-key.ts";
import type { Missing } from "../datapath/datapath.ts";
import type { AgentContext } from "./agent-context.ts";
import { type AbandonedLeases, abandonedAmong, allocatedLeases, type LivenessProbe } from "./liveness-probes.ts";
import { pendingDetaches } from "./pending-detach.ts";
import { hasInterface, keep, reconcileOwner } from "./reconcile-owner.ts";

/**
 * Attachments of this boot whose interface has gone without a DEL. Some runtimes never send one: containerd drops a
 * sandbox whose ADD and DEL both failed, because of a plugin later in the list, and creates the next one with a new
 * address. The interface went with the namespace.
 *
 * Leases that never had an interface are excepted, since a program or a person may have taken them.
 */
export class LostInterfaces {
  readonly #probes: readonly LivenessProbe[];
  readonly #graceMs: number;
  /** When each interface was first missing, on the monotonic clock. */
  readonly #missingSinceMs = new Map<string, number>();

  constructor(probes: readonly LivenessProbe[], graceMs: number) {
    this.#probes = probes;
    this.#graceMs = graceMs;
  }

  /**
   * Those whose interface has been missing at every check for longer than the grace, and whose addresses no probe
   * knows.
   * @param wanted addresses are needed now, so there is no grace, which only leaves time for DELs
   */
  async due(context: AgentContext, wanted = false): Promise<readonly AbandonedLeases[]> {
    const { allocator, mutex } = context;
    const standing = new Set((await context.dataPath.list()).map(({ owner }) => ownerKey(owner)));
    // A running call may be about to create the interface, so a busy owner is skipped instead of waited for.
    const isAbsent = ({ owner }: Lease): boolean => !standing.has(ownerKey(owner)) && !mutex.isBusy(ownerKey(owner));
    const missing = allocatedLeases(
      context,
      (lease) => isAbsent(lease) && !isStaleLease(lease, allocator.bootId) && allocator.hasInterface(lease),
    );
    const keys = new Set(missing.map(({ owner }) => ownerKey(owner)));
    for (const key of this.#missingSinceMs.keys()) if (!keys.has(key)) this.#missingSinceMs.delete(key);
    const now = performance.now();
    for (const key of keys) if (!this.#missingSinceMs.has(key)) this.#missingSinceMs.set(key, now);
    const graceMs = wanted ? 0 : this.#graceMs;
    const late = missing.filter(({ owner }) => now - (this.#missingSinceMs.get(ownerKey(owner)) ?? now) >= graceMs);
    return abandonedAmong(late, this.#probes);
  }
}

/** Ends the attachment, unless an ADD has come since. Answers whether it did. */
export async function endInterfaceLost(
  context: AgentContext,
  { owner, leases: seen }: AbandonedLeases,
): Promise<boolean> {
  const done = await reconcileOwner(context, {
    owner,
    what: `giving back "${owner.sandboxId}"`,
    decide: async ({ leases }) => {
      const isSame = leases.every(({ generation }) => seen.some((lease) => lease.generation === generation));
      if (leases.length === 0 || !isSame || (await hasInterface(context, owner))) return keep;
      // Other parts of the attachment may remain, such as a port of the switch.
      return { t: "detach" };
    },
  });
  if (done !== undefined) context.meter?.add("pipette_ipam_leases_reclaimed_total", { reason: "interface_lost" });
  return done !== undefined;
}

/** Lost interfaces that the data path can create again and for which no DEL has come. */
export function remakeableInterfaces(context: AgentContext): readonly Missing[] {
  const missing = context.dataPath.missing?.() ?? [];
  if (missing.length === 0) return missing;
  const leaving = new Set(pendingDetaches(context).map(ownerKey));
  // An address of another IPAM plugin counts as held until a DEL comes.
  const isHeld = ({ owner, ownLease }: Missing): boolean => !ownLease || context.allocator.find(owner).length > 0;
  return missing.filter((one) => !leaving.has(ownerKey(one.owner)) && isHeld(one));
}

/** Has the data path create the interface again if it is still missing. Answers whether it was. */
export async function remakeInterface(context: AgentContext, missing: Missing): Promise<boolean> {
  const { owner, ownLease } = missing;
  const done = await reconcileOwner(context, {
    owner,
    what: `making the interface of "${owner.sandboxId}" again`,
    decide: ({ leases }) => {
      if (!remakeableInterfaces(context).some((each) => ownerKey(each.owner) === ownerKey(owner))) return keep;
      const addresses = ownLease ? leases.map(({ address }) => address.ip) : undefined;
      return { t: "remake", missing, addresses };
    },
  });
  return done !== undefined;
}
