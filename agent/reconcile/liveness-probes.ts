import type { Lease } from "../../ipam/mod.ts";
import { ownerKey } from "../../shared/cni/owner-key.ts";
import { formatIp } from "../../shared/net/ip.ts";
import type { DataPath } from "../datapath/datapath.ts";

/** Somebody who may know that the owner of a lease is still there, whatever the store says. */
export interface Source {
  /** For the log. */
  readonly name: string;
  /** A test for leases, by what the source sees now. It throws where the source cannot be asked: then nothing is known. */
  look(): Promise<(lease: Lease) => boolean>;
}

/** Owners that have an interface of ours. */
export function interfaceSource(dataPath: Pick<DataPath, "list">): Source {
  return {
    name: "interfaces",
    async look() {
      const standing = new Set((await dataPath.list()).map(({ owner }) => ownerKey(owner)));
      return ({ owner }) => standing.has(ownerKey(owner));
    },
  };
}

/**
 * Addresses that stand in a network namespace, whoever wired them.
 * @param addresses every address there, as `formatIp` writes it
 */
export function namespaceSource(addresses: () => Promise<ReadonlySet<string>>): Source {
  return {
    name: "network namespaces",
    async look() {
      const standing = await addresses();
      return ({ address }) => standing.has(formatIp(address.ip));
    },
  };
}

/** The leases whose owner none of the sources knows. @throws where one cannot be asked */
export async function unknownTo(sources: readonly Source[], leases: readonly Lease[]): Promise<readonly Lease[]> {
  const tests = await Promise.all(sources.map((source) => source.look()));
  return leases.filter((lease) => !tests.some((knows) => knows(lease)));
}
