import type { Allocator, Lease } from "../../ipam/mod.ts";
import { ownerKey } from "../../shared/cni/owner-key.ts";
import type { Owner } from "../../shared/cni/types.ts";
import { formatIp } from "../../shared/net/ip.ts";
import type { AgentConfig } from "../config/agent-config.ts";
import type { DataPath } from "../datapath/datapath.ts";

/** A source that may know that the owner of a lease still exists, whatever the store says. */
export interface LivenessProbe {
  /** For the log. */
  readonly name: string;
  /** Answers a test for leases, by the present state. Throws if the state cannot be read. */
  probe(): Promise<(lease: Lease) => boolean>;
}

/** Owners that have an interface of ours. */
export function interfaceProbe(dataPath: Pick<DataPath, "list">): LivenessProbe {
  return {
    name: "interfaces",
    async probe() {
      const standing = new Set((await dataPath.list()).map(({ owner }) => ownerKey(owner)));
      return ({ owner }) => standing.has(ownerKey(owner));
    },
  };
}

/**
 * Knows the owners of addresses found in network namespaces, whoever configured them.
 * @param addresses every address there, as `formatIp` writes it
 */
export function namespaceProbe(addresses: () => Promise<ReadonlySet<string>>): LivenessProbe {
  return {
    name: "network namespaces",
    async probe() {
      const standing = await addresses();
      return ({ address }) => standing.has(formatIp(address.ip));
    },
  };
}

/** An owner whose leases may be released, and these leases as they were read. */
export interface AbandonedLeases {
  readonly owner: Owner;
  readonly leases: readonly Lease[];
}

/**
 * The owners of these leases that no probe knows. An owner that is known by one of its addresses keeps all of them.
 * @throws where a probe cannot be asked
 */
export async function abandonedAmong(
  leases: readonly Lease[],
  probes: readonly LivenessProbe[],
): Promise<readonly AbandonedLeases[]> {
  if (leases.length === 0) return [];
  const tests = await Promise.all(probes.map((each) => each.probe()));
  const isAlive = (lease: Lease): boolean => tests.some((knows) => knows(lease));
  return [...Map.groupBy(leases, ({ owner }) => ownerKey(owner)).values()].flatMap((own) => {
    const [first] = own;
    return first === undefined || own.some(isAlive) ? [] : [{ owner: first.owner, leases: own }];
  });
}

/**
 * The allocated leases of the agent's networks that `is` accepts, read a page at a time: programs may have taken a
 * million through the service, and the janitor asks every few seconds.
 */
export function allocatedLeases(
  { allocator, config }: { readonly allocator: Allocator; readonly config: AgentConfig },
  is: (lease: Lease) => boolean,
): readonly Lease[] {
  const found: Lease[] = [];
  for (const { name } of config.networks)
    for (const page of allocator.pages(name))
      for (const lease of page) if (lease.state === "allocated" && is(lease)) found.push(lease);
  return found;
}
