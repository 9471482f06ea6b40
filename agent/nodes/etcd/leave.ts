import { CniCode, CniError } from "../../../shared/errors.ts";
import type { EtcdClient } from "./client/etcd-client.ts";
import { get, remove, textOf, unchanged } from "./client/operations.ts";
import { etcdLimits } from "./etcd-limits.ts";
import type { Keys } from "./keys.ts";
import { readNode, readOwner } from "./records.ts";

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
    const node = readNode(name, textOf(kv));
    if (uid !== undefined && node.uid !== uid) return false;
    const marks = node.subnets.map((subnet) => keys.subnet(subnet));
    const held = await client.txn({ run: marks.map(get) });
    const own = marks.flatMap((key, at) => {
      const mark = held.found[at]?.[0];
      const owner = mark === undefined ? undefined : readOwner(textOf(mark));
      return mark !== undefined && owner?.node === name && owner.uid === node.uid ? [{ key, mark }] : [];
    });
    const { succeeded } = await client.txn({
      when: [unchanged(nodeKey, kv.modRevision), ...own.map(({ key, mark }) => unchanged(key, mark.modRevision))],
      run: [remove(nodeKey), ...own.map(({ key }) => remove(key)), remove(keys.aliveNode(name))],
    });
    if (succeeded) return true;
  }
  const is = `others have changed it ${etcdLimits.claims} times meanwhile`;
  throw new CniError(CniCode.tryAgainLater, `Cannot release node "${name}" in ${client.name}: ${is}, wanted a moment`);
}
