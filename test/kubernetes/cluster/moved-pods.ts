import { expect, test } from "vitest";
import { replicas } from "./all-ways.ts";
import type { Cluster } from "./cluster.ts";
import { placeOf, podsOf } from "./cluster-pods.ts";
import { Load } from "./load.ts";
import { deployment } from "./workload.ts";

/** Pods that make way for others, while somebody goes on to ask their service. */
export function movedPods(cluster: () => Cluster): void {
  /** Asks from a pod that stays. */
  async function underLoad(work: () => Promise<void>): Promise<void> {
    const { plane } = cluster();
    await plane.apply(deployment("asking", { replicas: 1, node: "n1" }));
    await cluster().rolledOut("asking");
    const [pod] = await podsOf(cluster(), "asking");
    if (pod === undefined) throw new Error("There is no pod to ask from");
    const { spec } = await plane.get<{ spec: { clusterIP: string } }>("service web");
    const load = new Load((await placeOf(cluster(), pod)).namespace, spec.clusterIP, 80);
    try {
      await work();
    } finally {
      await load[Symbol.asyncDispose]();
    }
    expect(load.failures).toEqual([]);
    expect(load.answered).toBeGreaterThan(10);
  }

  test("a rolling restart replaces every pod, and nobody who asks the service hears nothing", async () => {
    const before = await podsOf(cluster(), "web");
    await underLoad(async () => {
      await cluster().plane.kubectl("rollout restart deployment/web");
      await cluster().rolledOut("web");
    });
    const after = await podsOf(cluster(), "web");
    const old = new Set(before.map(({ uid }) => uid));
    expect(after.filter(({ uid }) => old.has(uid))).toEqual([]);
    expect(after).toHaveLength(replicas);
  });

  test("a node that is drained gives all of its addresses back, and its pods come on the other", async () => {
    const { plane } = cluster();
    try {
      await underLoad(async () => {
        await plane.kubectl("drain n2 --ignore-daemonsets --timeout=60s");
        await cluster().rolledOut("web");
      });
      const node = cluster().node("n2");
      expect(await node.sandboxes()).toEqual([]);
      await node.agrees();
    } finally {
      await plane.kubectl("uncordon n2");
    }
  });
}
