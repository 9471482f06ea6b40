import type { Lease } from "../../ipam/mod.ts";
import { ownerKey } from "../../shared/cni/owner-key.ts";
import { formatIp } from "../../shared/net/ip.ts";
import type { DataPath } from "../datapath/datapath.ts";

/** Somebody who may know that the owner of a lease is still there, whatever the store says. */
export interface LivenessProbe {
  /** For the log. */
  readonly name: string;
  /** A test for leases, by what the source sees now. It throws where the source cannot be asked: then nothing is known. */
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
 * Addresses that stand in a network namespace, whoever wired them.
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

/** The leases whose owner none of the sources knows. @throws where one cannot be asked */
export async function unknownToProbes(
  sources: readonly LivenessProbe[],
  leases: readonly Lease[],
): Promise<readonly Lease[]> {
  const tests = await Promise.all(sources.map((source) => source.probe()));
  return leases.filter((lease) => !tests.some((knows) => knows(lease)));
}
