import { afterEach, beforeEach, expect, test } from "vitest";
import { createEtcdRegistry, type EtcdNodeRegistry } from "../../agent/cluster/etcd/etcd-registry.ts";
import { KeepAlive } from "../../agent/cluster/etcd/keep-alive.ts";
import { Keys } from "../../agent/cluster/etcd/keys.ts";
import type { ClusterNode, NodeState } from "../../agent/cluster/node-registry.ts";
import { EtcdClient, etcdLimits, etcdMethods, parseEndpoints } from "../../agent/protocols/etcd/mod.ts";
import { createLogger } from "../../shared/log.ts";
import { unary } from "../../shared/proto/services.ts";
import { int64, message, repeated } from "../../shared/proto/wire.ts";
import { describeWith } from "../support/requires.ts";
import { EtcdCluster } from "./etcd-cluster.ts";
import { eventually, machine } from "./etcd-machines.ts";

const leasesMethod = unary(
  "/etcdserverpb.Lease/LeaseLeases",
  message({}),
  message({ leases: repeated(2, message({ id: int64(1) })) }),
);

describeWith("whether a node lives, in etcd", ["etcd"], () => {
  let etcd: EtcdCluster;
  let client: EtcdClient;
  let registry: EtcdNodeRegistry;
  let node: ClusterNode;
  let lines: string[];
  beforeEach(async () => {
    lines = [];
    etcd = await EtcdCluster.start();
    client = new EtcdClient(parseEndpoints(etcd.endpoints, {}));
    registry = createEtcdRegistry({ endpoints: etcd.endpoints });
    node = await registry.register(machine(1));
  });
  afterEach(async () => {
    await registry?.[Symbol.asyncDispose]();
    client?.[Symbol.dispose]();
    await etcd?.[Symbol.asyncDispose]();
  });

  const keepAlive = (self = node): KeepAlive =>
    new KeepAlive(
      client,
      new Keys("/pipette"),
      self,
      registry.health,
      createLogger("warn", (line) => lines.push(line)),
      50,
    );
  const state = async (): Promise<NodeState | undefined> => (await registry.list())[0]?.state;
  const leases = async (): Promise<readonly { readonly id: number }[]> => (await client.call(leasesMethod, {})).leases;

  test("ready as long as it says so, and lost at once when it ceases to", async () => {
    expect(await state()).toBe("lost");
    const alive = registry.keepAlive(node);
    await eventually("it is ready", async () => (await state()) === "ready");
    await alive[Symbol.asyncDispose]();
    expect(await state()).toBe("lost");
    expect(await leases()).toEqual([]);
    expect(await registry.register(machine(1))).toEqual(node);
  });

  test("ready again after its lease was lost, and after it was released and has come again", async () => {
    await using _ = keepAlive();
    await eventually("it is ready", async () => (await state()) === "ready");
    const [lease] = await leases();
    await client.call(etcdMethods.leaseRevoke, { id: lease!.id });
    await eventually("it has another lease", async () => (await state()) === "ready");
    expect((await leases()).map(({ id }) => id)).not.toContain(lease!.id);
    await registry.release("n1");
    await eventually("it says so", () => lines.join().includes('node \\"n1\\" is not registered any more'));
    await registry.register(machine(1));
    await eventually("it is ready again", async () => (await state()) === "ready");
  });

  test("a machine that has lost its name to another does not speak for it", async () => {
    await registry.release("n1");
    await registry.register({ ...machine(1), uid: "uid-other" });
    await using _ = keepAlive();
    await eventually("it says so", () => lines.join().includes("is not registered any more"));
    expect(await state()).toBe("lost");
  });

  test("through a restart of etcd, without a word to those who follow the nodes", async () => {
    await using followed = registry.follow();
    let maps = 0;
    followed.subscribe(() => maps++);
    await using _ = keepAlive();
    await eventually("it is ready", async () => (await state()) === "ready" && maps > 0);
    await etcd.signal(0, "SIGKILL");
    await eventually("it is missed", () => lines.length > 0);
    await etcd.startMember(0);
    lines.length = 0;
    await Bun.sleep(300);
    expect(await state()).toBe("ready");
    expect(maps).toBe(1);
  });

  test("the end of all does not wait for a member that never answers", async () => {
    await etcd.signal(0, "SIGSTOP");
    const alive = registry.keepAlive(node);
    const followed = registry.follow();
    const asked = registry.list().catch((caught: Error) => caught.message);
    const ended = async (): Promise<string> => {
      await Bun.sleep(100);
      await alive[Symbol.asyncDispose]();
      await followed[Symbol.asyncDispose]();
      await registry[Symbol.asyncDispose]();
      return String(await asked);
    };
    const late = Bun.sleep(etcdLimits.onlyTryMs - 500).then(() => "late");
    expect(await Promise.race([ended(), late])).toContain("the client is closed");
    await etcd.signal(0, "SIGCONT");
  });
});
