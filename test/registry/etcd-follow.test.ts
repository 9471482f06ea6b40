import { cpSync, rmSync } from "node:fs";
import { afterEach, expect, test } from "vitest";
import { createEtcdRegistry, type EtcdNodeRegistry } from "../../agent/cluster/etcd/etcd-registry.ts";
import { Mirror } from "../../agent/cluster/etcd/mirror.ts";
import type { ClusterNode, Followed } from "../../agent/cluster/node-registry.ts";
import { EtcdClient, parseEndpoints, put, retried } from "../../agent/protocols/etcd/mod.ts";
import { createLogger } from "../../shared/log.ts";
import { unary } from "../../shared/proto/services.ts";
import { int64, message } from "../../shared/proto/wire.ts";
import { random } from "../support/random.ts";
import { describeWith } from "../support/requires.ts";
import { EtcdCluster } from "./etcd-cluster.ts";
import { eventually, machine } from "./etcd-machines.ts";

const compactMethod = unary("/etcdserverpb.KV/Compact", message({ revision: int64(1) }), message({}));

describeWith("following the nodes in etcd", ["etcd"], () => {
  let etcd: EtcdCluster;
  let registries: EtcdNodeRegistry[] = [];
  let clients: EtcdClient[] = [];
  let lines: string[] = [];
  const logger = createLogger("warn", (line) => lines.push(line));

  afterEach(async () => {
    for (const each of registries) await each[Symbol.asyncDispose]();
    for (const each of clients) each[Symbol.dispose]();
    await etcd?.[Symbol.asyncDispose]();
    [registries, clients, lines] = [[], [], []];
  });

  function open(endpoints = etcd.endpoints): EtcdNodeRegistry {
    const registry = createEtcdRegistry({ endpoints, logger });
    registries.push(registry);
    return registry;
  }

  function client(): EtcdClient {
    const own = new EtcdClient(parseEndpoints(etcd.endpoints, {}));
    clients.push(own);
    return own;
  }

  async function compact(own: EtcdClient): Promise<void> {
    await retried(own, "compact the history", async () => {
      const { revision } = await own.txn({ run: [] });
      await own.call(compactMethod, { revision }).catch((caught: unknown) => {
        // The first try has done it, and its answer was lost.
        if (!String(caught).includes("required revision has been compacted")) throw caught;
      });
    });
  }

  const names = (followed: Followed<ReadonlyMap<string, ClusterNode>>): string =>
    [...(followed.current?.keys() ?? [])].sort().join(" ");

  test("everybody hears of who joins, moves and leaves, and of nothing else", async () => {
    etcd = await EtcdCluster.start();
    const registry = open();
    const followed = open().follow();
    const maps: string[] = [];
    followed.subscribe((map) => maps.push([...map.values()].map(({ name, mac }) => `${name}${mac ?? ""}`).join(" ")));
    await eventually("the first map", () => maps.length > 0);
    expect(maps).toEqual([""]);
    const node = await registry.register(machine(1));
    await eventually("it joins", () => names(followed) === "n1");
    expect(followed.current?.get("n1")).toEqual(node);
    await using _ = registry.keepAlive(node);
    await registry.register({ ...machine(1), mac: "02:00:00:00:00:01" });
    await eventually("it moves", () => maps.at(-1)?.includes("02:") === true);
    await registry.tenants.vnidOf("a");
    await eventually("it is heard of", async () => (await registry.list())[0]?.state === "ready");
    await registry.release("n1");
    await eventually("it leaves", () => names(followed) === "");
    expect(maps).toEqual(["", "n1", "n102:00:00:00:00:01", ""]);
  });

  test("a record that cannot be read keeps nobody else away", async () => {
    etcd = await EtcdCluster.start();
    const registry = open();
    await registry.register(machine(1));
    await client().txn({ run: [put("/pipette/v1/nodes/bad", "{"), put("/pipette/v1/nodes/\ud800", "x")] });
    await using followed = registry.follow();
    await eventually("the rest", () => names(followed) === "n1");
    expect(lines.join()).toContain("A record in the registry is left out");
    const bad = (await registry.list()).find(({ name }) => name === "bad");
    expect(await registry.release("bad", "uid-1")).toBe(false);
    expect(bad).toMatchObject({
      state: "unknown",
      problem: expect.stringContaining('Cannot read the record of node "bad"'),
    });
    expect(await registry.release("bad")).toBe(true);
    expect((await registry.list()).map(({ name }) => name)).not.toContain("bad");
  });

  test("everything is read anew from time to time, and what is the same is no news", async () => {
    etcd = await EtcdCluster.start();
    const registry = open();
    const prefix = "/pipette/v1/nodes/";
    let maps = 0;
    await using mirror = new Mirror({ client: client(), prefix, read: (name) => name, relistMs: 50 });
    mirror.subscribe(() => maps++);
    for (let i = 0; i < 10; i++) {
      await registry.register(machine(i));
      await eventually("it is there", () => mirror.current?.size === i + 1);
      await Bun.sleep(40);
    }
    const watches = /grpc_server_started_total\{[^}]*grpc_service="etcdserverpb.Watch"[^}]*\} (\d+)/;
    const metrics = await (await fetch(`${etcd.endpoint(0)}/metrics`)).text();
    expect(Number(watches.exec(metrics)?.[1])).toBeGreaterThan(3);
    expect(maps).toBeLessThanOrEqual(11);
  });

  test("what happened during an absence is caught up with, also where etcd has forgotten it since", async () => {
    etcd = await EtcdCluster.start({ members: 3 });
    const registry = open([etcd.endpoint(0), etcd.endpoint(1)]);
    await registry.register(machine(1));
    await using followed = open([etcd.endpoint(2)]).follow();
    await eventually("the first", () => names(followed) === "n1");

    await etcd.signal(2, "SIGKILL");
    await registry.register(machine(2));
    await etcd.startMember(2);
    await eventually("what it missed", () => names(followed) === "n1 n2");
    expect(lines.join()).not.toContain("compacted");

    await etcd.signal(2, "SIGKILL");
    await registry.release("n1");
    await registry.register(machine(3));
    await compact(client());
    await etcd.startMember(2);
    await eventually("what nobody remembers", () => names(followed) === "n2 n3");
    expect(lines.join()).toContain("the revisions since are compacted");
    await registry.register(machine(4));
    await eventually("what comes next", () => names(followed) === "n2 n3 n4");
  });

  test("another cluster in the same place, or an older copy of it, is read anew", async () => {
    etcd = await EtcdCluster.start();
    const registry = open();
    await registry.register(machine(1));
    await etcd.signal(0, "SIGKILL");
    const copy = `${etcd.directory}/copy`;
    cpSync(etcd.data(0), copy, { recursive: true });
    await etcd.startMember(0);
    await using followed = registry.follow();
    await registry.register(machine(2));
    await registry.register(machine(3));
    await eventually("three", () => names(followed) === "n1 n2 n3");

    await etcd.signal(0, "SIGKILL");
    rmSync(etcd.data(0), { recursive: true });
    cpSync(copy, etcd.data(0), { recursive: true });
    await etcd.startMember(0);
    await eventually("the copy", () => names(followed) === "n1");
    expect(lines.join()).toContain("another one than before, or of an earlier time");

    await etcd.begin();
    await eventually("nothing", () => names(followed) === "");
    await registry.register(machine(4));
    await eventually("the new one", () => names(followed) === "n4");
  });

  test("a member that falls silent is left for another", async () => {
    etcd = await EtcdCluster.start({ members: 3 });
    const registry = open();
    await registry.register(machine(1));
    // Each begins at a member by chance: some of these at the one that is stopped.
    const many = Array.from({ length: 12 }, () => open().follow());
    await eventually("all begin", () => many.every((each) => names(each) === "n1"));
    const silent = await etcd.leader();
    await etcd.signal(silent, "SIGSTOP");
    await registry.register(machine(2));
    await eventually("all go on", () => many.every((each) => names(each) === "n1 n2"));
    expect(lines.join()).toContain("has said nothing for 4000 ms");
    await etcd.signal(silent, "SIGCONT");
  });

  test("whatever happens to members and history, all end with the same as the registry", async () => {
    etcd = await EtcdCluster.start({ members: 3 });
    const pick = random(5);
    const registry = open();
    const many = Array.from({ length: 6 }, () => open().follow());
    const own = client();
    const until = performance.now() + 2_000;
    const trouble = async (): Promise<void> => {
      for (let member = 0; performance.now() < until; member = (member + 1) % 3) {
        const stop = pick(2) === 0;
        await etcd.signal(member, stop ? "SIGSTOP" : "SIGKILL");
        await Bun.sleep(200 + pick(400));
        if (stop) await etcd.signal(member, "SIGCONT");
        else await etcd.startMember(member);
        await compact(own);
      }
    };
    const churn = async (from: number): Promise<void> => {
      while (performance.now() < until) {
        const node = machine(from + pick(20));
        await (pick(3) > 0 ? registry.register(node) : registry.release(node.name)).catch(() => undefined);
      }
    };
    await Promise.all([trouble(), churn(0), churn(100), churn(200)]);
    const last = await registry.register(machine(999));
    await eventually("the last one", () => many.every((each) => each.current?.has(last.name)));
    const listed = async () => new Map((await registry.list()).map(({ state: _, ...node }) => [node.name, node]));
    // What a caller has given up may still come to a member, after the last one.
    await eventually("all to be the same", async () => {
      const wanted = await listed();
      return many.every((each) => Bun.deepEquals(new Map(each.current), wanted));
    });
    expect(await registry.repair()).toEqual([]);
  });
});
