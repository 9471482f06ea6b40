import { type IpamConfig, isStaleLease } from "../../ipam/mod.ts";
import { ownerFields } from "../../shared/cni/owner-key.ts";
import type { Owner } from "../../shared/cni/types.ts";
import { sameIp } from "../../shared/net/ip.ts";
import type { AgentContext } from "./agent-context.ts";
import {
  type AbandonedLeases,
  abandonedAmong,
  allocatedLeases,
  interfaceProbe,
  type LivenessProbe,
} from "./liveness-probes.ts";
import { hasInterface, keep, reconcileOwner } from "./reconcile-owner.ts";

/**
 * Leases of an earlier boot whose owners nobody knows, in networks that this agent serves.
 * @throws where a probe cannot be asked
 */
export function staleLeases(
  context: Pick<AgentContext, "allocator" | "config">,
  probes: readonly LivenessProbe[],
): Promise<readonly AbandonedLeases[]> {
  const { bootId } = context.allocator;
  return abandonedAmong(
    allocatedLeases(context, (lease) => isStaleLease(lease, bootId)),
    probes,
  );
}

/** Lets the addresses cool, unless an ADD has claimed them since: it renews the boot of its lease. Answers whether it did. */
export async function giveBackStale(context: AgentContext, owner: Owner): Promise<boolean> {
  const done = await reconcileOwner(context, {
    owner,
    what: `giving back "${owner.sandboxId}"`,
    decide: async ({ leases }) => {
      const isStale = leases.length > 0 && leases.every((lease) => isStaleLease(lease, context.allocator.bootId));
      return isStale && !(await hasInterface(context, owner)) ? { t: "cool" } : keep;
    },
  });
  if (done !== undefined) context.meter?.add("pipette_ipam_leases_reclaimed_total", { reason: "reboot" });
  return done !== undefined;
}

/**
 * For an ADD that finds no address: like a cooling address, a lease of an earlier boot has no grace if otherwise no pod
 * could be served. Its sandbox did not survive the reboot, and a new one of that name gets another address.
 * @returns whether an address is free now
 */
export async function reclaimStaleLease(
  context: Pick<AgentContext, "allocator" | "config" | "dataPath" | "livenessProbes" | "logger" | "meter">,
  network: string,
  config: IpamConfig,
): Promise<boolean> {
  const { allocator, logger } = context;
  const { requested } = config;
  if (requested.length === 0 && allocator.exhausted(network, config).length === 0) return false;
  const probes = [interfaceProbe(context.dataPath), ...context.livenessProbes];
  const stale = (await staleLeases(context, probes)).filter(({ owner }) => owner.network === network);
  const [oldest] = stale
    .flatMap(({ owner, leases }) => leases.map(({ address, generation }) => ({ owner, leases, address, generation })))
    .filter(({ address }) => requested.length === 0 || requested.some((ip) => sameIp(ip, address.ip)))
    .sort((a, b) => a.generation - b.generation);
  if (oldest === undefined) return false;
  logger.warn("a lease of an earlier boot is given back before its grace is over: nothing else is free", {
    ...ownerFields(oldest.owner),
    sources: probes.map(({ name }) => name),
  });
  // Each only if it is unchanged, since its owner may have come back.
  for (const lease of oldest.leases) allocator.reclaim(lease, "cooling");
  context.meter?.add("pipette_ipam_leases_reclaimed_total", { reason: "full_pool" });
  return true;
}
