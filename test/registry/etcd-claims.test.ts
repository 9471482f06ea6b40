import { afterEach, beforeEach, expect, test } from "vitest";
import {
  createEtcdRegistry,
  type EtcdNodeRegistry,
  type EtcdRegistryOptions,
} from "../../agent/cluster/etcd/etcd-registry.ts";
import type { ClusterNode } from "../../agent/cluster/node-registry.ts";
import { parseCidr, parseIp } from "../../shared/net/ip.ts";
import { describeWith } from "../support/requires.ts";
import { replay } from "./etcd-bijection.ts";
import { EtcdCluster } from "./etcd-cluster.ts";
import { machine, subnetsOf } from "./etcd-machines.ts";

const network = (cidr: string, hostBits: number) => ({ cidr: parseCidr(cidr)!, hostBits });

describeWith("claims of subnets in etcd", ["etcd"], () => {
  let etcd: EtcdCluster;
  let registries: EtcdNodeRegistry[];
  beforeEach(async () => {
    registries = [];
    etcd = await EtcdCluster.start();
  });
  afterEach(async () => {
    for (const each of registries) await each[Symbol.asyncDispose]();
    await etcd?.[Symbol.asyncDispose]();
  });

  function open(options: Partial<EtcdRegistryOptions> = {}): EtcdNodeRegistry {
    const registry = createEtcdRegistry({ endpoints: etcd.endpoints, ...options });
    registries.push(registry);
    return registry;
  }

  test("of 520 machines at once, 512 get a subnet each, and the others hear that there is none", async () => {
    // Several connections, since one would put everything in order.
    const many = Array.from({ length: 8 }, () => open());
    const began = performance.now();
    const joins = await Promise.allSettled(Array.from({ length: 520 }, (_, i) => many[i % 8]!.register(machine(i))));
    const wallMs = Math.round(performance.now() - began);
    const nodes = joins.flatMap((join) => (join.status === "fulfilled" ? [join.value] : []));
    const refused = joins.flatMap((join) => (join.status === "rejected" ? [join.reason] : []));
    expect(new Set(subnetsOf(nodes)).size).toBe(512);
    expect(refused).toHaveLength(8);
    for (const each of refused)
      expect(each).toMatchObject({
        code: 101,
        message: expect.stringContaining("all subnets of 10.128.0.0/14 are taken"),
      });

    // Room for eight comes from eight that leave.
    const [registry] = many as [EtcdNodeRegistry];
    for (const { name } of nodes.slice(0, 8)) expect(await registry.release(name)).toBe(true);
    const late = await Promise.all(Array.from({ length: 8 }, (_, i) => registry.register(machine(1000 + i))));
    expect(subnetsOf(late).sort()).toEqual(subnetsOf(nodes.slice(0, 8)).sort());
    expect(await registry.list()).toHaveLength(512);
    expect(await registry.repair()).toEqual([]);
    const { revisions, violations } = await replay(etcd.endpoint(0), late.at(-1)!);
    expect(violations).toEqual([]);
    expect(revisions).toBeGreaterThan(528);
    console.log(`520 machines at once: ${wallMs} ms`);
  });

  test("the first come in OpenShift's order, in a second lap those that are free", async () => {
    const registry = open({ networks: [network("10.1.0.0/24", 6), network("10.2.0.0/24", 6)] });
    const nodes: ClusterNode[] = [];
    for (let i = 0; i < 8; i++) nodes.push(await registry.register(machine(i)));
    expect(subnetsOf(nodes.slice(0, 4))).toEqual(["10.1.0.0/26", "10.1.0.64/26", "10.1.0.128/26", "10.1.0.192/26"]);
    expect(subnetsOf(nodes.slice(4)).every((subnet) => subnet.startsWith("10.2.0."))).toBe(true);
    await expect(registry.register(machine(8))).rejects.toMatchObject({ code: 101 });
    await registry.release("n2");
    expect(subnetsOf([await registry.register(machine(8))])).toEqual(["10.1.0.128/26"]);
    expect(await registry.repair()).toEqual([]);
  });

  test("a node of two families gets a subnet of each", async () => {
    const registry = open({ networks: [network("fd00::/48", 64), network("10.1.0.0/16", 6)] });
    expect(subnetsOf([await registry.register(machine(0))])).toEqual(["10.1.0.0/26", "fd00:0:0:1::/64"]);
    expect(subnetsOf([await registry.register(machine(1))])).toEqual(["10.1.1.0/26", "fd00:0:0:2::/64"]);
    expect(await registry.release("n0")).toBe(true);
    expect(await registry.repair()).toEqual([]);
    expect(await registry.list()).toHaveLength(1);
  });

  test("the same machine gets the same again, where it has moved too; another one of its name is refused", async () => {
    const registry = open();
    const node = await registry.register(machine(1));
    expect(await open().register(machine(1))).toEqual(node);
    const moved = { ...machine(1), addresses: [parseIp("198.51.100.7")!], mac: "02:00:00:00:00:01" };
    expect(await registry.register(moved)).toEqual({ ...moved, subnets: node.subnets });
    expect(await registry.list()).toEqual([{ ...moved, subnets: node.subnets, state: "lost" }]);

    const other = { ...machine(1), uid: "uid-other" };
    await expect(registry.register(other)).rejects.toMatchObject({
      code: 7,
      message: expect.stringMatching(
        /belongs to another machine, at 198\.51\.100\.7 with 10\.128\.0\.0\/23, wanted .* 192\.0\.0\.1/,
      ),
    });
    expect(await registry.release("n1", "uid-other")).toBe(false);
    expect(await registry.release("n1", "uid-1")).toBe(true);
    expect(await registry.release("n1")).toBe(false);
    expect((await registry.register(other)).uid).toBe("uid-other");
  });

  test("a machine with other networks is refused, with both", async () => {
    await open().register(machine(1));
    const joins = open({ networks: [network("10.0.0.0/8", 8)] }).register(machine(2));
    await expect(joins).rejects.toMatchObject({
      code: 7,
      message: expect.stringMatching(/10\.0\.0\.0\/8.*wanted those of the registry.*10\.128\.0\.0\/14/),
    });
  });
});
