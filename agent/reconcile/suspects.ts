import { type IpamConfig, isStaleLease, type Lease } from "../../ipam/mod.ts";
import { ownerFields, ownerKey } from "../../shared/cni/owner-key.ts";
import { sameIp } from "../../shared/net/ip.ts";
import type { AgentParts } from "./agent-parts.ts";
import { allocatedLeases } from "./allocated-leases.ts";
import { interfaceSource, type Source, unknownTo } from "./sources.ts";

type Parts = Pick<AgentParts, "allocator" | "config" | "dataPath" | "sources" | "logger">;

/**
 * Leases of an earlier boot whose owners no source knows, in networks that this agent serves; those of one owner side
 * by side. @throws where a source cannot be asked
 */
export async function abandonedLeases(
  parts: Omit<Parts, "logger" | "sources">,
  sources: readonly Source[],
): Promise<readonly Lease[]> {
  const suspects = allocatedLeases(parts, (lease) => isStaleLease(lease, parts.allocator.bootId));
  if (suspects.length === 0) return [];
  const unknown = await unknownTo(sources, suspects);
  // An owner that is known by one of its addresses keeps all of them.
  const known = new Set(suspects.filter((lease) => !unknown.includes(lease)).map(({ owner }) => ownerKey(owner)));
  return unknown.filter(({ owner }) => !known.has(ownerKey(owner)));
}

/**
 * For an ADD that gets no address: a lease of an earlier boot has no grace any more where nobody else can be served, as
 * cooling has none. Its sandbox did not survive the boot, and whoever comes back under its name gets another address.
 * @returns whether there is something to be had now
 */
export async function makeSuspectsGiveWay(parts: Parts, network: string, config: IpamConfig): Promise<boolean> {
  const { requested } = config;
  if (requested.length === 0 && parts.allocator.exhausted(network, config).length === 0) return false;
  const sources = [interfaceSource(parts.dataPath), ...parts.sources];
  const abandoned = (await abandonedLeases(parts, sources)).filter(({ owner }) => owner.network === network);
  const oldest = abandoned
    .filter(({ address }) => requested.length === 0 || requested.some((ip) => sameIp(ip, address.ip)))
    .sort((a, b) => a.generation - b.generation)[0];
  if (oldest === undefined) return false;
  const { owner } = oldest;
  parts.logger.warn("a lease of an earlier boot is given back before its grace is over: nothing else is free", {
    ...ownerFields(owner),
    sources: sources.map(({ name }) => name),
  });
  // Each only while it is what it was: its owner may have come back since.
  for (const lease of abandoned)
    if (ownerKey(lease.owner) === ownerKey(owner)) parts.allocator.reclaim(lease, "cooling");
  return true;
}
