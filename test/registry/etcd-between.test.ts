import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { Join, leave } from "../../agent/cluster/etcd/join.ts";
import { Keys } from "../../agent/cluster/etcd/keys.ts";
import { writeConfig, writeNode, writeOwner } from "../../agent/cluster/etcd/records.ts";
import type { ClusterNode } from "../../agent/cluster/node-registry.ts";
import {
  EtcdClient,
  get,
  type KeyValue,
  parseEndpoints,
  put,
  type RequestOp,
  remove,
  textOf,
} from "../../agent/protocols/etcd/mod.ts";
import { formatCidr, parseCidr } from "../../shared/net/ip.ts";
import { describeWith } from "../support/requires.ts";
import { EtcdCluster } from "./etcd-cluster.ts";
import { machine, subnetsOf } from "./etcd-machines.ts";

type Transaction = Parameters<EtcdClient["txn"]>[0];

/** A client of a real etcd that lets others come between its looks and what it writes. */
class InterruptedClient extends EtcdClient {
  /** Runs once, before the next transaction that is bound to what was seen. */
  between: (() => Promise<void>) | undefined;

  override async txn(transaction: Transaction): ReturnType<EtcdClient["txn"]> {
    const { between } = this;
    if (between !== undefined && (transaction.when ?? []).length > 0) {
      this.between = undefined;
      await between();
    }
    return super.txn(transaction);
  }
}

const networks = [{ cidr: parseCidr("10.1.0.0/24")!, hostBits: 6 }];
const other = { node: "other", uid: "uid-other" };

describeWith("what comes between a look at etcd and what is written then", ["etcd"], () => {
  let etcd: EtcdCluster;
  let client: InterruptedClient;
  let others: EtcdClient;
  let keys: Keys;
  let n = 0;

  beforeAll(async () => {
    etcd = await EtcdCluster.start();
    client = new InterruptedClient(parseEndpoints(etcd.endpoints, {}));
    others = new EtcdClient(parseEndpoints(etcd.endpoints, {}));
  });
  afterAll(async () => {
    client?.[Symbol.dispose]();
    others?.[Symbol.dispose]();
    await etcd?.[Symbol.asyncDispose]();
  });
  beforeEach(() => {
    keys = new Keys(`/t${n++}`);
    client.between = undefined;
  });

  const join = (): Join => new Join(client, keys, networks);
  const attempt = (i = 1): Promise<ClusterNode> => join().attempt(machine(i), true, []);
  const whenInBetween = (...run: readonly RequestOp[]): void => {
    client.between = async () => void (await others.txn({ run }));
  };
  const textAt = async (key: string): Promise<string | undefined> => {
    const found: KeyValue | undefined = (await others.txn({ run: [get(key)] })).found[0]?.[0];
    return found === undefined ? undefined : textOf(found);
  };
  const markOf = ({ subnets: [subnet] }: ClusterNode): string => keys.subnet(subnet!);

  describe("a node that joins anew", () => {
    beforeEach(async () => void (await others.txn({ run: [put(keys.config, writeConfig(networks))] })));

    test("takes another subnet where its first choice was marked", async () => {
      const first = keys.subnet(parseCidr("10.1.0.0/26")!);
      whenInBetween(put(first, writeOwner(other)));
      // Which one of the others is left to chance, so that nodes that join together do not all take the next.
      expect(subnetsOf([await attempt()])).toEqual([expect.stringMatching(/^10\.1\.0\.(64|128|192)\/26$/)]);
      expect(await textAt(first)).toBe(writeOwner(other));
    });

    test("is refused where another machine has taken its name", async () => {
      const theirs = { ...machine(1), uid: "uid-other", subnets: [parseCidr("10.1.0.192/26")!] };
      whenInBetween(put(keys.node("n1"), writeNode(theirs)));
      await expect(attempt()).rejects.toMatchObject({ code: 7, message: expect.stringContaining("another machine") });
      expect(await textAt(keys.node("n1"))).toBe(writeNode(theirs));
      expect(await textAt(keys.subnet(parseCidr("10.1.0.0/26")!))).toBeUndefined();
    });

    test("is refused where the cluster's networks have become others", async () => {
      whenInBetween(put(keys.config, writeConfig([{ cidr: parseCidr("10.9.0.0/16")!, hostBits: 8 }])));
      await expect(attempt()).rejects.toMatchObject({ code: 7, message: expect.stringContaining("10.9.0.0/16") });
      expect(await textAt(keys.node("n1"))).toBeUndefined();
    });
  });

  test("the first node does not say what the networks are over another's word", async () => {
    const theirs = writeConfig([{ cidr: parseCidr("10.9.0.0/16")!, hostBits: 8 }]);
    whenInBetween(put(keys.config, theirs));
    await expect(attempt()).rejects.toMatchObject({ code: 7, message: expect.stringContaining("10.9.0.0/16") });
    expect(await textAt(keys.config)).toBe(theirs);
  });

  describe("a node that is there already", () => {
    let node: ClusterNode;
    beforeEach(async () => {
      node = await attempt();
    });

    test("with its mark lost does not overwrite the mark of who has taken the subnet since", async () => {
      await others.txn({ run: [remove(markOf(node))] });
      whenInBetween(put(markOf(node), writeOwner(other)));
      await expect(attempt()).rejects.toMatchObject({
        code: 101,
        message: expect.stringContaining(`its subnet ${formatCidr(node.subnets[0]!)} is held by node "other" too`),
      });
      expect(await textAt(markOf(node))).toBe(writeOwner(other));
    });

    test("with its mark lost puts it in again where nobody has", async () => {
      await others.txn({ run: [remove(markOf(node))] });
      expect(await attempt()).toEqual(node);
      expect(await textAt(markOf(node))).toBe(writeOwner({ node: "n1", uid: "uid-1" }));
    });

    test("that has moved does not overwrite the record of another machine of its name", async () => {
      const theirs = writeNode({ ...node, uid: "uid-other" });
      whenInBetween(put(keys.node("n1"), theirs));
      const moved = { ...machine(1), mac: "02:00:00:00:00:01" };
      await expect(join().attempt(moved, true, [])).rejects.toMatchObject({ code: 7 });
      expect(await textAt(keys.node("n1"))).toBe(theirs);
    });

    test("that leaves does not take out another machine that has its name by then", async () => {
      const theirs = writeNode({ ...node, uid: "uid-other" });
      whenInBetween(put(keys.node("n1"), theirs));
      expect(await leave(client, keys, "n1", "uid-1")).toBe(false);
      expect(await textAt(keys.node("n1"))).toBe(theirs);
    });

    test("that leaves does not free a subnet that is marked as another's by then", async () => {
      whenInBetween(put(markOf(node), writeOwner(other)));
      expect(await leave(client, keys, "n1", "uid-1")).toBe(true);
      expect([await textAt(keys.node("n1")), await textAt(markOf(node))]).toEqual([undefined, writeOwner(other)]);
    });
  });
});
