import { CniCode, CniError } from "../../../shared/errors.ts";
import {
  type EtcdClient,
  etcdLimits,
  get,
  type KeyValue,
  remove,
  textOf,
  unchanged,
} from "../../protocols/etcd/mod.ts";
import type { ClusterNode } from "../node-registry.ts";
import type { Keys } from "./keys.ts";
import { readNode, readOwner } from "./records.ts";

/** A mark of a subnet, and at which revision it was seen. */
interface Mark {
  readonly key: string;
  readonly modRevision: number;
}

/**
 * One attempt to take a node out and to free its subnets, in one transaction of deletions: etcd takes those also when
 * its database is full. A subnet that is marked as another's stays.
 * @param uid only if the node has it
 * @throws {EtcdError}
 */
export async function leave(client: EtcdClient, keys: Keys, name: string, uid: string | undefined): Promise<boolean> {
  const nodeKey = keys.node(name);
  for (let i = 0; i < etcdLimits.claims; i++) {
    const { found } = await client.txn({ run: [get(nodeKey)] });
    const kv = found[0]?.[0];
    if (kv === undefined) return false;
    const node = readable(name, kv);
    if (uid !== undefined && node?.uid !== uid) return false;
    const own = node === undefined ? [] : await marksOf(client, keys, node);
    const { succeeded } = await client.txn({
      when: [unchanged(nodeKey, kv.modRevision), ...own.map(({ key, modRevision }) => unchanged(key, modRevision))],
      run: [remove(nodeKey), ...own.map(({ key }) => remove(key)), remove(keys.aliveNode(name))],
    });
    if (succeeded) return true;
  }
  const is = `others have changed it ${etcdLimits.claims} times meanwhile`;
  throw new CniError(CniCode.tryAgainLater, `Cannot release node "${name}" in ${client.name}: ${is}, wanted a moment`);
}

/** The marks of a node's subnets that are its own. */
async function marksOf(client: EtcdClient, keys: Keys, { name, uid, subnets }: ClusterNode): Promise<readonly Mark[]> {
  const marks = subnets.map((subnet) => keys.subnet(subnet));
  const { found } = await client.txn({ run: marks.map(get) });
  return marks.flatMap((key, i) => {
    const kv = found[i]?.[0];
    const owner = kv === undefined ? undefined : readOwner(textOf(kv));
    return kv !== undefined && owner?.node === name && owner.uid === uid ? [{ key, modRevision: kv.modRevision }] : [];
  });
}

/** Also what cannot be read can be taken out; its marks are found by a repair. */
function readable(name: string, kv: KeyValue): ClusterNode | undefined {
  try {
    return readNode(name, textOf(kv));
  } catch {
    return undefined;
  }
}
