import { ownerFields, ownerKey } from "../../shared/cni/owner-key.ts";
import { limits } from "../../shared/limits.ts";
import { formatCidr } from "../../shared/net/ip.ts";
import { reasonOf } from "../../shared/reason.ts";
import type { AgentParts } from "./agent-parts.ts";
import { detachAndEnd, finishDeparted } from "./departed.ts";
import { planReconcile, type ReconcilePlan } from "./reconcile-plan.ts";
import { restoreLost } from "./restore.ts";

/** How many interfaces are taken away at the same time: each costs the kernel about a millisecond. */
const atOnce = 8;

/**
 * Brings store and kernel into agreement after a start, before the first call is served. A single
 * failure is logged and left to the janitor; the agent starts all the same.
 */
export async function reconcile(parts: AgentParts): Promise<ReconcilePlan> {
  const plan = planReconcile({
    leases: parts.allocator.list(),
    interfaces: await parts.dataPath.list(),
    departures: parts.allocator.departures(),
    networks: parts.config.networks.map((network) => network.name),
    bootId: parts.allocator.bootId,
  });
  for (const attached of plan.adopt) parts.attached.set(ownerKey(attached.owner), 0);
  // An earlier release has not noted it.
  parts.allocator.noteWired(plan.adopt.filter(({ ownLease }) => ownLease).map(({ owner }) => owner));
  report(parts, plan);
  await restoreLost(parts, plan);
  const jobs: (() => Promise<unknown>)[] = [
    ...plan.finish.map((owner) => () => finishDeparted(parts, owner)),
    ...plan.orphans.map((attached) => () => removeOrphan(parts, attached.owner)),
  ];
  await inBatches(jobs, (caught) => {
    parts.logger.error("tidying up failed, the janitor goes on with it", { error: reasonOf(caught) });
  });
  return plan;
}

/** An ADD whose plugin runs just now may have taken the lease since the plan was made, so look again. */
function removeOrphan(parts: AgentParts, owner: ReconcilePlan["finish"][number]): Promise<void> {
  return parts.lanes.run(ownerKey(owner), { what: `removing the orphan of "${owner.sandboxId}"` }, async () => {
    if (parts.allocator.find(owner).length > 0) return;
    parts.leftover.set(ownerKey(owner), owner);
    await detachAndEnd(parts, owner);
  });
}

function report(parts: AgentParts, plan: ReconcilePlan): void {
  const { logger } = parts;
  for (const { owner, hostIfname } of plan.orphans)
    logger.warn("an interface of ours has a lease that ended and is removed", { ...ownerFields(owner), hostIfname });
  for (const { owner, hostIfname } of plan.restore)
    logger.warn("an interface of ours has no lease and is given one", { ...ownerFields(owner), hostIfname });
  for (const { attached, reason } of plan.doubtful)
    logger.warn("an interface of ours has no lease and is kept", {
      ...ownerFields(attached.owner),
      hostIfname: attached.hostIfname,
      reason,
    });
  for (const lease of plan.missing)
    logger.warn("a lease has no interface", {
      ...ownerFields(lease.owner),
      wired: parts.allocator.isWired(lease),
      address: formatCidr(lease.address),
    });
  for (const lease of plan.suspect)
    logger.warn("a lease of an earlier boot has no interface and is given back unless an ADD claims it", {
      ...ownerFields(lease.owner),
      address: formatCidr(lease.address),
    });
  if (plan.suspect.length > 0)
    logger.warn("the node has booted since leases were given out: none is given back before the grace is over", {
      leases: plan.suspect.length,
      graceMs: limits.suspectGraceMs,
    });
  logger.info("reconciled", {
    adopted: plan.adopt.length,
    finished: plan.finish.length,
    orphans: plan.orphans.length,
    restored: plan.restore.length,
    doubtful: plan.doubtful.length,
    missing: plan.missing.length,
    suspect: plan.suspect.length,
  });
}

async function inBatches(jobs: readonly (() => Promise<unknown>)[], failed: (caught: unknown) => void): Promise<void> {
  for (let at = 0; at < jobs.length; at += atOnce) {
    await Promise.all(jobs.slice(at, at + atOnce).map((job) => job().catch(failed)));
  }
}
