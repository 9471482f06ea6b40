import { afterEach, beforeEach, expect, test } from "vitest";
import { createEtcdRegistry, type EtcdNodeRegistry } from "../../agent/cluster/etcd/etcd-registry.ts";
import { EtcdClient, getAll, keyOf, parseEndpoints, put, textOf } from "../../agent/protocols/etcd/mod.ts";
import { random } from "../support/random.ts";
import { describeWith } from "../support/requires.ts";
import { EtcdCluster } from "./etcd-cluster.ts";
import { eventually } from "./etcd-machines.ts";

describeWith("VNIDs of projects in etcd", ["etcd"], () => {
  let etcd: EtcdCluster;
  let client: EtcdClient;
  let registries: EtcdNodeRegistry[];
  beforeEach(async () => {
    etcd = await EtcdCluster.start();
    client = new EtcdClient(parseEndpoints(etcd.endpoints, {}));
    registries = Array.from({ length: 4 }, () => createEtcdRegistry({ endpoints: etcd.endpoints }));
  });
  afterEach(async () => {
    for (const each of registries ?? []) await each[Symbol.asyncDispose]();
    client?.[Symbol.dispose]();
    await etcd?.[Symbol.asyncDispose]();
  });

  const tenants = (i = 0) => registries[i % 4]!.tenants;

  /** What etcd has: the VNID of each project, and those that count as in use. */
  async function stored(): Promise<{ readonly vnids: ReadonlyMap<string, number>; readonly used: readonly number[] }> {
    const [projects, ids] = ["/pipette/v1/vnids/", "/pipette/v1/vnid-ids/"] as const;
    const { found } = await client.txn({ run: [getAll(projects), getAll(ids)] });
    return {
      vnids: new Map((found[0] ?? []).map((kv) => [keyOf(kv).slice(projects.length), Number(textOf(kv))])),
      used: (found[1] ?? []).map((kv) => Number.parseInt(keyOf(kv).slice(ids.length), 16)),
    };
  }

  async function expectSound(): Promise<void> {
    const { vnids, used } = await stored();
    expect([...new Set(vnids.values())].filter((vnid) => vnid > 0).sort((a, b) => a - b)).toEqual(used);
  }

  test("each project gets one of its own, from 10, whoever asks and how often", async () => {
    expect(await tenants().vnidOf("first")).toBe(10);
    expect(await tenants(1).vnidOf("first")).toBe(10);
    const asked = await Promise.all(Array.from({ length: 200 }, (_, i) => tenants(i).vnidOf(`p${i % 50}`)));
    for (const [i, vnid] of asked.entries()) expect(vnid).toBe(asked[i % 50]);
    expect(new Set(asked).size).toBe(50);
    expect(Math.min(...asked)).toBeGreaterThan(10);
    expect(Math.max(...asked)).toBeLessThan(1000);
    await expectSound();
  });

  test('project "default" is privileged, until a person says otherwise', async () => {
    expect(await tenants().vnidOf("default")).toBe(0);
    const own = await tenants().assign("default", "own");
    expect(own).toBeGreaterThanOrEqual(10);
    expect(await tenants().vnidOf("default")).toBe(own);
    await expectSound();
  });

  test("projects join, become global, and have their own again; a VNID that nobody has is free", async () => {
    await using followed = tenants().follow();
    const [a, b] = [await tenants().vnidOf("a"), await tenants().vnidOf("b")];
    expect(await tenants().assign("b", { join: "a" })).toBe(a);
    expect((await stored()).used).toEqual([a]);
    expect(await tenants().assign("a", "global")).toBe(0);
    expect((await stored()).used).toEqual([a]);
    expect(await tenants().vnidOf("b")).toBe(a);
    expect(await tenants().assign("b", "global")).toBe(0);
    expect((await stored()).used).toEqual([]);
    const own = await tenants().assign("b", "own");
    expect(own).toBeGreaterThan(b);
    expect(await tenants().assign("b", "own")).not.toBe(own);
    expect(await tenants().assign("c", { join: "a" })).toBe(0);
    await expectSound();
    const { vnids } = await stored();
    await eventually("it is followed", () => followed.current?.get("c") === 0);
    expect(followed.current).toEqual(vnids);
  });

  test("however they come and go at once, what is in use is what projects have", async () => {
    const pick = random(3);
    const names = ["a", "b", "c", "d", "e"];
    for (const name of names) await tenants().vnidOf(name);
    const one = async (worker: number): Promise<void> => {
      for (let i = 0; i < 25; i++) {
        const [name, other] = [names[pick(5)]!, names[pick(5)]!];
        await tenants(worker).assign(name, pick(4) === 0 ? "global" : pick(2) === 0 ? "own" : { join: other });
      }
    };
    await Promise.all([one(0), one(1), one(2), one(3)]);
    await expectSound();
  });

  test("what people do is confirmed with it, what nodes allocate is not, and a person can confirm what stands", async () => {
    const confirmed = async (): Promise<object> => {
      const prefix = "/pipette/v1/confirmed-vnids/";
      const { found } = await client.txn({ run: [getAll(prefix)] });
      return Object.fromEntries((found[0] ?? []).map((kv) => [keyOf(kv).slice(prefix.length), Number(textOf(kv))]));
    };
    const [a, b] = [await tenants().vnidOf("a"), await tenants().vnidOf("b")];
    const c = await tenants().vnidOf("c");
    expect([await tenants().vnidOf("default"), await confirmed()]).toEqual([0, {}]);
    await tenants().assign("b", { join: "a" });
    expect(await confirmed()).toEqual({ a, b: a });
    await tenants().assign("b", "global");
    const own = await tenants().assign("a", "own");
    expect(await confirmed()).toEqual({ a: own, b: 0 });
    // What stands already is confirmed all the same.
    await client.txn({ run: [put("/pipette/v1/vnids/c", "0")] });
    await tenants().assign("c", "global");
    expect(await confirmed()).toEqual({ a: own, b: 0, c: 0 });
    await client.txn({ run: [put("/pipette/v1/vnids/d", String(own)), put("/pipette/v1/vnids/e", String(own))] });
    await tenants().confirm?.("d", own);
    expect(await confirmed()).toEqual({ a: own, b: 0, c: 0, d: own, e: own });
    await expect(tenants().confirm?.("c", c)).rejects.toThrow("it has 0");
    await expect(tenants().confirm?.("nobody", b)).rejects.toThrow("it has none");
    await using followed = tenants().followConfirmed?.();
    await eventually("it is followed", () => followed?.current?.get("d") === own);
  });

  test("what is no project is refused, and what is no VNID never used", async () => {
    await expect(tenants().vnidOf("A b")).rejects.toMatchObject({ code: 7 });
    await expect(tenants().assign("a", { join: "nobody" })).rejects.toMatchObject({
      code: 7,
      message: expect.stringContaining('project "nobody" has none'),
    });
    await client.txn({ run: [put("/pipette/v1/vnids/bad", "16777216")] });
    await expect(tenants().vnidOf("bad")).rejects.toMatchObject({
      code: 101,
      message: expect.stringContaining('is "16777216", wanted a number from 0 to 16777215'),
    });
  });
});
