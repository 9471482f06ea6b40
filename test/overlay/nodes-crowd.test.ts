import { isDeepStrictEqual } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { compileExecutables } from "../conformance/plugin.ts";
import { eventually } from "../support/agent-process.ts";
import { describeWith } from "../support/requires.ts";
import { Lab } from "./lab/lab.ts";
import type { LabPod } from "./lab/lab-pod.ts";
import { answers } from "./lab/reach.ts";
import { type Traces, tracesOn } from "./lab/traces.ts";

const podsPerNode = 50;

describeWith("a crowd of pods on two nodes", ["root", "openvswitch", "nft", "etcd"], () => {
  let lab: Lab;
  let bare: readonly Traces[];
  let pods: readonly LabPod[];

  beforeAll(async () => {
    compileExecutables();
    lab = await Lab.start({ nodes: ["a", "a"] });
    bare = await Promise.all(lab.nodes.map(tracesOn));
  });
  afterAll(() => lab?.[Symbol.asyncDispose]());

  const numbers = Array.from({ length: podsPerNode }, (_, i) => i);

  test("all are added at once, and nothing is doubled", async () => {
    pods = await Promise.all(lab.nodes.flatMap((node) => numbers.map((i) => node.addPod(`p${i}`))));
    for (const family of [4, 6] as const)
      expect(new Set(pods.map((pod) => pod.address(family))).size).toBe(2 * podsPerNode);
    for (const [i, node] of lab.nodes.entries()) {
      const { leases, ports } = await tracesOn(node);
      expect(leases).toEqual([...node.pods].flatMap(({ addresses }) => addresses).sort());
      expect(ports.length).toBe((bare[i]?.ports.length ?? 0) + podsPerNode);
    }
  });

  /** In both directions and families; the pair's name where one ping is not answered. */
  async function silentPairs(pairs: readonly number[]): Promise<number[]> {
    const silent: number[] = [];
    for (const i of pairs) {
      const [from, to] = [pods[i], pods[i + podsPerNode]] as [LabPod, LabPod];
      const all = await Promise.all([
        ...to.addresses.map((address) => answers(from.namespace, address)),
        ...from.addresses.map((address) => answers(to.namespace, address)),
      ]);
      if (all.includes(false)) silent.push(i);
    }
    return silent;
  }

  test("each reaches its counterpart on the other node", async () => {
    // A switch in user space that has just got a hundred interfaces loses a packet now and then; nobody stays silent.
    const silent = await silentPairs(numbers);
    expect(silent.length).toBeLessThan(podsPerNode / 10);
    expect(await silentPairs(silent)).toEqual([]);
  });

  test("all are deleted at once, and nothing is left", async () => {
    await Promise.all(pods.map((pod) => pod.remove()));
    for (const [i, node] of lab.nodes.entries())
      await eventually(async () => isDeepStrictEqual(await tracesOn(node), bare[i]), `the end of ${node.name}'s pods`);
  });
});
