import { type EtcdClient, EtcdError, get, put } from "../../protocols/etcd/mod.ts";

/**
 * A number that nobody else gets, from 0: etcd counts how often the key was put, and one transaction puts and reads it.
 *
 * It is a hint where to begin to look, so that those who look at once find different things. Numbers that are lost,
 * doubled or begin again cost a try more; that nothing is given away twice rests on the claims alone.
 * @throws {EtcdError}
 */
export async function takeTicket(client: EtcdClient, key: string): Promise<number> {
  const { found } = await client.txn({ run: [put(key, ""), get(key)] });
  const version = found[1]?.[0]?.version ?? 0;
  if (version < 1) throw new EtcdError("uncertain", `the answer says nothing about "${key}"`);
  return version - 1;
}
