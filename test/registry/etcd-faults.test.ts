import { type ChildProcess, spawn } from "node:child_process";
import { afterEach, expect, test } from "vitest";
import { createEtcdRegistry, type EtcdNodeRegistry } from "../../agent/cluster/etcd/etcd-registry.ts";
import type { ClusterNode } from "../../agent/cluster/node-registry.ts";
import { parseCidr } from "../../shared/net/ip.ts";
import { NetworkSandbox } from "../support/network-sandbox.ts";
import { random } from "../support/random.ts";
import { describeWith } from "../support/requires.ts";
import { replay } from "./etcd-bijection.ts";
import { EtcdCluster } from "./etcd-cluster.ts";
import { eventually, machine, subnetsOf } from "./etcd-machines.ts";
import { HoldingProxy } from "./holding-proxy.ts";

const program = new URL("etcd-join-program.ts", import.meta.url).pathname;

describeWith("the registry in etcd, when things break", ["etcd"], () => {
  let etcd: EtcdCluster;
  let registries: EtcdNodeRegistry[] = [];
  let workers: ChildProcess[] = [];

  afterEach(async () => {
    await Promise.all(workers.map(end));
    for (const each of registries) await each[Symbol.asyncDispose]();
    await etcd?.[Symbol.asyncDispose]();
    [registries, workers] = [[], []];
  });

  function open(endpoints = etcd.endpoints): EtcdNodeRegistry {
    const registry = createEtcdRegistry({ endpoints });
    registries.push(registry);
    return registry;
  }

  function work(from: number): ChildProcess {
    const child = spawn(process.execPath, [program, etcd.endpoints.join(","), String(from), "40"], { stdio: "ignore" });
    workers.push(child);
    return child;
  }

  /** Nothing was ever doubled, nothing is left behind; every machine still has what it had. */
  async function expectSound(registry: EtcdNodeRegistry): Promise<void> {
    const before = await registry.list();
    for (const { state: _, ...node } of before)
      expect(await registry.register({ ...node, addresses: machine(Number(node.name.slice(1))).addresses })).toEqual(
        node,
      );
    expect(new Set(subnetsOf(before)).size).toBe(before.length);
    const last = await registry.register(machine(9999));
    expect(await registry.repair()).toEqual([]);
    expect((await replay(etcd.endpoint(0), last)).violations).toEqual([]);
  }

  test("machines that are killed at any moment leave nothing half done", async () => {
    etcd = await EtcdCluster.start();
    const registry = open();
    const crowd = [work(0), work(100), work(200)];
    const pick = random(11);
    await eventually("they have begun", async () => (await registry.list()).length > 20);
    for (let kills = 0; kills < 5; kills++) {
      await Bun.sleep(100 + pick(300));
      const victim = pick(3);
      await end(crowd[victim]!);
      crowd[victim] = work(victim * 100);
    }
    await Promise.all(workers.map(end));
    expect((await registry.list()).length).toBeGreaterThan(0);
    await expectSound(registry);
  });

  test("members that are killed, stopped, and start again from disk double nothing", async () => {
    etcd = await EtcdCluster.start({ members: 3 });
    const until = performance.now() + 3_000;
    const joined = new Map<string, ClusterNode>();
    const churn = async (registry: EtcdNodeRegistry, from: number): Promise<void> => {
      for (let i = from; performance.now() < until; i += 1) {
        const node = await registry.register(machine(i % 100)).catch(() => undefined);
        if (node !== undefined) joined.set(node.name, node);
      }
    };
    const trouble = async (): Promise<void> => {
      const leader = await etcd.leader();
      await etcd.signal(leader, "SIGKILL");
      await Bun.sleep(700);
      await etcd.startMember(leader);
      const next = await etcd.leader();
      await etcd.signal(next, "SIGSTOP");
      await Bun.sleep(700);
      await etcd.signal(next, "SIGCONT");
      // All of them, as after a power cut.
      await Promise.all([0, 1, 2].map((i) => etcd.signal(i, "SIGKILL")));
      await Promise.all([0, 1, 2].map((i) => etcd.startMember(i)));
    };
    await Promise.all([trouble(), churn(open(), 0), churn(open(), 30), churn(open(), 60)]);
    const registry = open();
    const listed = new Map((await registry.list()).map(({ state: _, ...node }) => [node.name, node]));
    // What a machine was told is still true.
    for (const [name, node] of joined) expect(listed.get(name)).toEqual(node);
    await expectSound(registry);
  });

  test("without a majority a machine waits, and then has one subnet, whatever was carried out meanwhile", async () => {
    etcd = await EtcdCluster.start({ members: 3 });
    const leader = await etcd.leader();
    const others = [0, 1, 2].filter((i) => i !== leader);
    // Said twice, so that a try is given up as where there are others.
    const registry = open([etcd.endpoint(leader), etcd.endpoint(leader)]);
    await registry.register(machine(1));
    for (const i of others) await etcd.signal(i, "SIGSTOP");
    const joins = registry.register(machine(2));
    expect(await Promise.race([joins, Bun.sleep(2_500)])).toBeUndefined();
    for (const i of others) await etcd.signal(i, "SIGCONT");
    const node = await joins;
    expect((await registry.list()).map(({ state: _, ...each }) => each)).toEqual([
      await registry.register(machine(1)),
      node,
    ]);
    await expectSound(registry);
  });

  test("a claim whose answer is lost is found again, not made twice", async () => {
    etcd = await EtcdCluster.start();
    const direct = open();
    await using followed = direct.follow();
    await using proxy = await HoldingProxy.to(etcd.endpoint(0));
    const networks = [{ cidr: parseCidr("10.1.0.0/24")!, hostBits: 6 }];
    const registry = createEtcdRegistry({ endpoints: [proxy.endpoint], networks });
    registries.push(registry);
    await registry.register(machine(1));

    // Answers are held back for longer than the news of the claim takes, and lost with their connection.
    proxy.holdMs = 500;
    const joins = registry.register(machine(2));
    await eventually("it is claimed", () => followed.current?.has("n2") === true);
    const claimed = followed.current?.get("n2");
    expect(await Promise.race([joins, Bun.sleep(0)])).toBeUndefined();
    proxy.holdMs = 0;
    proxy.cut();
    expect(await joins).toEqual(claimed!);
    expect(subnetsOf([await registry.register(machine(3))])).toEqual(["10.1.0.128/26"]);

    proxy.holdMs = 500;
    const leaves = registry.release("n2");
    await eventually("it is released", () => followed.current?.has("n2") === false);
    proxy.holdMs = 0;
    proxy.cut();
    expect(await leaves).toBe(true);
    expect(await registry.repair()).toEqual([]);
  });

  test("nobody there: the error says so, in time", async () => {
    etcd = await EtcdCluster.start();
    const registry = createEtcdRegistry({ endpoints: etcd.endpoints, callMs: 1_000 });
    registries.push(registry);
    await registry.register(machine(1));
    await etcd.signal(0, "SIGKILL");
    await expect(registry.list()).rejects.toMatchObject({
      code: 11,
      message: expect.stringMatching(
        /^Cannot list the nodes in the etcd registry at http.*ECONNREFUSED.*, wanted an answer within/,
      ),
    });
    await etcd.startMember(0);
    expect(await registry.list()).toHaveLength(1);
  });
});

describeWith("the registry in etcd, each member on a machine of its own", ["etcd", "root", "nft"], () => {
  test("a leader that is cut off from the others is left, and doubles nothing", async () => {
    await using sandbox = await NetworkSandbox.enter("pt-etcd-");
    await sandbox.node("ip link add br0 type bridge");
    await sandbox.node("ip addr add 10.99.0.100/24 dev br0");
    await sandbox.node("ip link set br0 up");
    const places: { address: string; namespace: string }[] = [];
    for (const i of [1, 2, 3]) {
      const path = await sandbox.addPod();
      const namespace = path.slice(path.lastIndexOf("/") + 1);
      await sandbox.node(`ip link add m${i} type veth peer name eth0 netns ${namespace}`);
      await sandbox.node(`ip link set m${i} master br0 up`);
      await sandbox.pod(path, `ip addr add 10.99.0.${i}/24 dev eth0`);
      await sandbox.pod(path, "ip link set eth0 up");
      await sandbox.pod(path, "ip link set lo up");
      places.push({ address: `10.99.0.${i}`, namespace });
    }
    await using etcd = await EtcdCluster.start({ members: places });
    const leader = await etcd.leader();
    await using registry = createEtcdRegistry({ endpoints: [etcd.endpoint(leader), etcd.endpoint((leader + 1) % 3)] });
    await using other = createEtcdRegistry({ endpoints: [etcd.endpoint((leader + 2) % 3)] });
    const many = Array.from({ length: 6 }, () => registry.follow());
    await registry.register(machine(1));
    const within = `ip netns exec ${places[leader]!.namespace}`;
    const peers = places.filter((_, i) => i !== leader).map(({ address }) => address);
    await sandbox.node(`${within} nft add table inet cut`);
    for (const [hook, field] of [
      ["input", "saddr"],
      ["output", "daddr"],
    ]) {
      await sandbox.node(`${within} nft add chain inet cut ${hook} { type filter hook ${hook} priority 0 ; }`);
      await sandbox.node(`${within} nft add rule inet cut ${hook} ip ${field} { ${peers.join(", ")} } drop`);
    }
    // Both sides are asked while nobody knows yet.
    const [a, b] = await Promise.all([registry.register(machine(2)), other.register(machine(3))]);
    expect(new Set(subnetsOf([a, b])).size).toBe(2);
    await eventually("all hear of it", () => many.every((each) => each.current?.size === 3));
    await sandbox.node(`${within} nft delete table inet cut`);
    const last = await registry.register(machine(4));
    await eventually("all hear of the last one", () => many.every((each) => each.current?.size === 4));
    expect(await registry.repair()).toEqual([]);
    await etcd.healthy(leader);
    expect((await replay(etcd.endpoint(leader), last)).violations).toEqual([]);
    for (const each of many) await each[Symbol.asyncDispose]();
  });
});

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  child.kill("SIGKILL");
  await ended;
}
