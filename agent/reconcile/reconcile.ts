import { parseIpamConfig, takeOver } from "../../ipam/mod.ts";
import { ownerFields, ownerKey } from "../../shared/cni/owner-key.ts";
import type { Owner } from "../../shared/cni/types.ts";
import { latestVersion } from "../../shared/cni/versions.ts";
import { CniError } from "../../shared/errors.ts";
import { limits } from "../../shared/limits.ts";
import { formatCidr } from "../../shared/net/ip.ts";
import { reasonOf } from "../../shared/reason.ts";
import { Fields } from "../../shared/schema/json-fields.ts";
import { ipamSection } from "../config/network-sections.ts";
import type { AgentContext } from "./agent-context.ts";
import { removeUnclaimed } from "./gc.ts";
import { finishPendingDetach } from "./pending-detach.ts";
import { planReconcile, type ReconcilePlan } from "./reconcile-plan.ts";
import { restoreLost } from "./restore.ts";

/** How many interfaces are removed at the same time; each costs the kernel about a millisecond. */
const atOnce = 8;

/**
 * Imports host-local's leases of the agent's networks before anything is decided by the leases. A failure must not
 * prevent the agent's start: each ADD tries again, and fails with the reason.
 */
export async function takeNetworksOver({ allocator, config, logger }: AgentContext): Promise<void> {
  for (const network of config.networks) {
    const { name } = network;
    try {
      const conf = new Fields({ ipam: ipamSection(config, network) });
      const ipam = parseIpamConfig({ conf, network: name, version: latestVersion, args: "" });
      await takeOver(allocator, name, (line) => logger.info(line), ipam);
    } catch (caught) {
      const { message, details } = CniError.from(caught, "take over from host-local");
      logger.error(message, { network: name, details });
    }
  }
}

/**
 * Brings store and kernel into agreement after a start, before the first call is served. A single
 * failure is logged and left to the janitor; the agent starts all the same.
 */
export async function reconcile(context: AgentContext): Promise<ReconcilePlan> {
  const plan = planReconcile({
    leases: context.allocator.list(),
    interfaces: await context.dataPath.list(),
    pendingDetaches: context.allocator.pendingDetaches(),
    networks: context.config.networks.map((network) => network.name),
    bootId: context.allocator.bootId,
  });
  for (const attached of plan.adopt) context.lastAddAt.set(ownerKey(attached.owner), 0);
  // An earlier release did not record it.
  context.allocator.noteInterfaces(plan.adopt.filter(({ ownLease }) => ownLease).map(({ owner }) => owner));
  report(context, plan);
  await restoreLost(context, plan);
  const jobs: (() => Promise<unknown>)[] = [
    ...plan.finish.map((owner) => () => finishPendingDetach(context, owner)),
    ...plan.orphans.map((attached) => () => removeOrphan(context, attached.owner)),
  ];
  await inBatches(jobs, (caught) => {
    context.logger.error("tidying up failed, the janitor goes on with it", { error: reasonOf(caught) });
  });
  return plan;
}

/** A concurrent ADD may have taken the lease since the plan was made. */
function removeOrphan(context: AgentContext, owner: Owner): Promise<boolean> {
  const what = `removing the orphan of "${owner.sandboxId}"`;
  return removeUnclaimed(context, owner, { what, lastAddAt: context.lastAddAt.get(ownerKey(owner)) });
}

function report(context: AgentContext, plan: ReconcilePlan): void {
  const { logger } = context;
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
      wired: context.allocator.hasInterface(lease),
      address: formatCidr(lease.address),
    });
  for (const lease of plan.stale)
    logger.warn("a lease of an earlier boot has no interface and is given back unless an ADD claims it", {
      ...ownerFields(lease.owner),
      address: formatCidr(lease.address),
    });
  if (plan.stale.length > 0)
    logger.warn("the node has booted since leases were given out: none is given back before the grace is over", {
      leases: plan.stale.length,
      graceMs: limits.staleGraceMs,
    });
  logger.info("reconciled", {
    adopted: plan.adopt.length,
    finished: plan.finish.length,
    orphans: plan.orphans.length,
    restored: plan.restore.length,
    doubtful: plan.doubtful.length,
    missing: plan.missing.length,
    suspect: plan.stale.length,
  });
}

async function inBatches(jobs: readonly (() => Promise<unknown>)[], failed: (caught: unknown) => void): Promise<void> {
  for (let at = 0; at < jobs.length; at += atOnce) {
    await Promise.all(jobs.slice(at, at + atOnce).map((job) => job().catch(failed)));
  }
}
