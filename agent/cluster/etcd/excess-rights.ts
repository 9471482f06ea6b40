import { type EtcdClient, put, unchanged } from "../../protocols/etcd/mod.ts";
import type { Keys } from "./keys.ts";

/**
 * What this client may write and no node has to, in sentences. etcd holds every branch of a transaction against the
 * client's role, also one that is never taken: so nothing is written to find it out. What cannot be told is not said.
 */
export async function excessRights(client: EtcdClient, keys: Keys): Promise<readonly string[]> {
  const rights: readonly (readonly [key: string, what: string])[] = [
    [keys.confirmedVnid(nobody), "VNIDs of projects can be confirmed, which lets one project into another"],
    [keys.node(nobody), "the records of other nodes can be written, which sends their pods' packets elsewhere"],
    [keys.config, "the cluster networks can be written, which keeps every node from joining"],
  ];
  const may = await Promise.all(rights.map(([key]) => mayWrite(client, key)));
  return rights.flatMap(([, what], i) => (may[i] ? [what] : []));
}

/** No node or project can be called so. */
const nobody = "-";
/** No key gets there in the life of a cluster. */
const neverReached = Number.MAX_SAFE_INTEGER;

async function mayWrite(client: EtcdClient, key: string): Promise<boolean> {
  try {
    const { succeeded } = await client.txn({ when: [unchanged(key, neverReached)], run: [put(key, "")] });
    return !succeeded;
  } catch {
    return false;
  }
}
