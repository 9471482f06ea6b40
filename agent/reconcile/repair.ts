import { ownerKey, sameOwner } from "../../shared/cni/owner-key.ts";
import type { Owner } from "../../shared/cni/types.ts";
import type { AgentContext } from "./agent-context.ts";
import { interfaceProbe, type LivenessProbe, unknownToProbes } from "./liveness-probes.ts";
import { detachAndEnd, finishPendingDetach } from "./pending-detach.ts";
import { planReconcile } from "./reconcile-plan.ts";
import { restoreOne } from "./restore.ts";

export interface RepairOptions {
  /** The runtime has no such pod any more: its lease of this generation ends, and its interface goes. */
  readonly goneGeneration?: number;
  /** Who is asked, beside the interfaces, before a lease without an interface is given back. */
  readonly livenessProbes: readonly LivenessProbe[];
}

/**
 * Brings lease, interface and what belongs to them into agreement for one owner, while the agent serves. Everything is
 * read inside the owner's lane: what disagreed only because a call was under way agrees then, and is left alone.
 * @returns what was done, for people; `undefined` where nothing was to be done
 * @throws {CniError} as the lane and the data path do
 */
export async function repairOwner(
  context: AgentContext,
  owner: Owner,
  options: RepairOptions,
): Promise<string | undefined> {
  if (await finishPendingDetach(context, owner)) return "finished what its DEL left";
  return context.mutex.run(ownerKey(owner), { what: `mending "${owner.sandboxId}"` }, () =>
    mendInLane(context, owner, options),
  );
}

async function mendInLane(context: AgentContext, owner: Owner, options: RepairOptions): Promise<string | undefined> {
  const { allocator, config, dataPath } = context;
  const held = allocator.find(owner);
  if (options.goneGeneration !== undefined) {
    // Given out anew since: then somebody wants it.
    if (held.length > 0 && !held.some(({ generation }) => generation === options.goneGeneration)) return undefined;
    allocator.release(owner, "releasing");
    await detachAndEnd(context, owner);
    return "took its interface away, and let its addresses cool";
  }
  const interfaces = await dataPath.list();
  const own = interfaces.filter((attached) => sameOwner(attached.owner, owner));
  const plan = planReconcile({
    leases: allocator.list(owner.network).filter((lease) => sameOwner(lease.owner, owner)),
    interfaces: own,
    pendingDetaches: [],
    networks: config.networks.map((network) => network.name),
    bootId: allocator.bootId,
  });
  const network = config.networks.find(({ name }) => name === owner.network);
  const [lost] = plan.restore;
  if (lost !== undefined && network !== undefined) {
    const standing = new Set(interfaces.map((attached) => ownerKey(attached.owner)));
    return (await restoreOne(context, network, lost, standing)) ? "gave its interface a lease again" : undefined;
  }
  if (plan.orphans.length > 0) {
    await detachAndEnd(context, owner);
    return "took its interface away, whose lease had ended";
  }
  if (own.length > 0) return undefined;
  const bare = [...plan.missing, ...plan.stale];
  if (bare.length !== (await unknownToProbes([interfaceProbe(dataPath), ...options.livenessProbes], bare)).length)
    return undefined;
  if (bare.length > 0) allocator.release(owner, "releasing");
  // Also where nothing is held: a port of the switch can outlive the interface behind it.
  await detachAndEnd(context, owner);
  return bare.length > 0 ? "let its addresses cool" : "took away what was left of its port";
}
