import { afterEach, expect, test } from "vitest";
import { createEtcdRegistry, type EtcdNodeRegistry } from "../../agent/cluster/etcd/etcd-registry.ts";
import { EtcdClient, parseEndpoints, put, remove, retried } from "../../agent/protocols/etcd/mod.ts";
import { describeWith } from "../support/requires.ts";
import { EtcdCluster } from "./etcd-cluster.ts";
import { eventually, machine, subnetsOf } from "./etcd-machines.ts";

describeWith("what is wrong in etcd", ["etcd"], () => {
  let etcd: EtcdCluster;
  let client: EtcdClient;
  let registry: EtcdNodeRegistry;

  async function start(quotaBytes?: number): Promise<void> {
    etcd = await EtcdCluster.start(quotaBytes === undefined ? {} : { quotaBytes });
    client = new EtcdClient(parseEndpoints(etcd.endpoints, {}));
    registry = createEtcdRegistry({ endpoints: etcd.endpoints });
  }
  afterEach(async () => {
    await registry?.[Symbol.asyncDispose]();
    client?.[Symbol.dispose]();
    await etcd?.[Symbol.asyncDispose]();
  });

  const subnet = (text: string): string => `/pipette/v1/subnets/${text}`;
  const owner = (node: string, uid: string): string => JSON.stringify({ node, uid });

  test("leftovers are found, put right where it is clear how, and told of where it is not", async () => {
    await start();
    for (const i of [1, 2, 3, 4]) await registry.register(machine(i));
    expect(await registry.repair()).toEqual([]);
    await client.txn({
      run: [
        put(subnet("10.131.254.0/23"), owner("gone", "uid-gone")),
        put(subnet("10.131.252.0/23"), owner("n1", "uid-of-before")),
        remove(subnet("10.129.0.0/23")),
        put(subnet("10.130.0.0/23"), owner("n4", "uid-4")),
        put(subnet("10.131.250.0/23"), "scribble"),
      ],
    });
    const problems = [
      { problem: 'subnet 10.129.0.0/23 of node "n2" is not marked as taken', outcome: "repaired" },
      { problem: 'subnet 10.130.0.0/23 of node "n3" is held by node "n4"', outcome: "left alone" },
      { problem: 'the mark of subnet "10.131.250.0/23" cannot be read', outcome: "left alone" },
      { problem: 'subnet 10.131.252.0/23 is taken by node "n1", which does not have it', outcome: "repaired" },
      { problem: 'subnet 10.131.254.0/23 is taken by node "gone", which does not have it', outcome: "repaired" },
    ];
    const dry = problems.map((each) => (each.outcome === "repaired" ? { ...each, outcome: "found" } : each));
    expect(await registry.repair({ dryRun: true })).toEqual(dry);
    const listed = new Map((await registry.list()).map(({ name, problem }) => [name, problem]));
    expect([...listed]).toEqual([
      ["n1", undefined],
      ["n2", problems[0]?.problem],
      ["n3", problems[1]?.problem],
      ["n4", undefined],
    ]);
    expect(await registry.repair()).toEqual(problems);
    expect(await registry.repair()).toEqual(problems.filter(({ outcome }) => outcome === "left alone"));
    await expect(registry.register(machine(3))).rejects.toMatchObject({
      code: 101,
      message: expect.stringContaining('its subnet 10.130.0.0/23 is held by node "n4" too'),
    });
    // A release frees what is the node's own and nothing else.
    expect(await registry.release("n3")).toBe(true);
    expect(await registry.repair()).toMatchObject([{ outcome: "repaired" }, { outcome: "left alone" }]);
  });

  test("a node whose mark is gone takes it again when it comes", async () => {
    await start();
    const node = await registry.register(machine(1));
    await client.txn({ run: [remove(subnet("10.128.0.0/23"))] });
    expect(await registry.register(machine(1))).toEqual(node);
    expect(await registry.repair()).toEqual([]);
  });

  test("a full database: nodes stay, leave and are followed, and a new one hears why it has to wait", async () => {
    await start(4 * 1024 * 1024);
    const node = await registry.register(machine(1));
    await registry.register(machine(2));
    await using followed = registry.follow();
    const block = "x".repeat(1024 * 1024);
    const filled = retried(client, "fill the database", async () => {
      for (let i = 0; i < 20; i++) await client.txn({ run: [put(`/block/${i}`, block)] });
    });
    await expect(filled).rejects.toThrow("database space exceeded");
    await expect(registry.register(machine(3))).rejects.toMatchObject({
      code: 11,
      message: expect.stringMatching(/its database is full \(.*\), wanted room: compact/),
    });
    expect(await registry.register(machine(1))).toEqual(node);
    expect(await registry.release("n2")).toBe(true);
    await eventually("it has left", () => followed.current?.size === 1);
    expect(subnetsOf(await registry.list())).toEqual(subnetsOf([node]));
  });
});
