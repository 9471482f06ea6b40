import { type IpamConfig, type Lease, ofAnotherBoot } from "../../ipam/mod.ts";
import { ownerFields, ownerKey } from "../../shared/cni/owner-key.ts";
import { sameIp } from "../../shared/net/ip.ts";
import type { AgentContext } from "./agent-context.ts";
import { allocatedLeases } from "./allocated-leases.ts";
import { interfaceProbe, type LivenessProbe, unknownToProbes } from "./liveness-probes.ts";

type Parts = Pick<AgentContext, "allocator" | "config" | "dataPath" | "livenessProbes" | "logger">;

/**
 * Leases of an earlier boot whose owners no source knows, in networks that this agent serves; those of one owner side
 * by side. @throws where a source cannot be asked
 */
export async function staleLeases(
  context: Omit<Parts, "logger" | "livenessProbes">,
  sources: readonly LivenessProbe[],
): Promise<readonly Lease[]> {
  const suspects = allocatedLeases(context, (lease) => ofAnotherBoot(lease, context.allocator.bootId));
  if (suspects.length === 0) return [];
  const unknown = await unknownToProbes(sources, suspects);
  // An owner that is known by one of its addresses keeps all of them.
  const known = new Set(suspects.filter((lease) => !unknown.includes(lease)).map(({ owner }) => ownerKey(owner)));
  return unknown.filter(({ owner }) => !known.has(ownerKey(owner)));
}

/**
 * For an ADD that gets no address: a lease of an earlier boot has no grace any more where nobody else can be served, as
 * cooling has none. Its sandbox did not survive the boot, and whoever comes back under its name gets another address.
 * @returns whether there is something to be had now
 */
export async function reclaimStaleLease(context: Parts, network: string, config: IpamConfig): Promise<boolean> {
  const { requested } = config;
  if (requested.length === 0 && context.allocator.exhausted(network, config).length === 0) return false;
  const sources = [interfaceProbe(context.dataPath), ...context.livenessProbes];
  const abandoned = (await staleLeases(context, sources)).filter(({ owner }) => owner.network === network);
  const oldest = abandoned
    .filter(({ address }) => requested.length === 0 || requested.some((ip) => sameIp(ip, address.ip)))
    .sort((a, b) => a.generation - b.generation)[0];
  if (oldest === undefined) return false;
  const { owner } = oldest;
  context.logger.warn("a lease of an earlier boot is given back before its grace is over: nothing else is free", {
    ...ownerFields(owner),
    sources: sources.map(({ name }) => name),
  });
  // Each only while it is what it was: its owner may have come back since.
  for (const lease of abandoned)
    if (ownerKey(lease.owner) === ownerKey(owner)) context.allocator.reclaim(lease, "cooling");
  return true;
}
