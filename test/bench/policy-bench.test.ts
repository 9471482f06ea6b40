import { describe, expect, test } from "vitest";
import { describeWith } from "../support/requires.ts";
import { measurePolicies, policyTable } from "./policies/measure-policies.ts";
import { measureWatches, watchTable } from "./policies/measure-watches.ts";
import {
  acrossNamespaces,
  largeNamespaces,
  oneNamespace,
  policyPerPod,
  smallNamespaces,
} from "./policies/workloads.ts";

describeWith("the benchmark of the watches in miniature", ["linux", "openssl"], () => {
  test("every node hears of every change, and no mark of a pod is lost", async () => {
    const figures = await measureWatches(4, 3, 0.1, 200);
    expect(figures).toMatchObject({ nodes: 4, podEventsPerSecond: 200 });
    expect(Math.min(figures.lastNodeMs.p50, figures.peakBytes)).toBeGreaterThan(0);
    expect(watchTable(figures).split("\n")).toHaveLength(3);
  });
});

describe("the benchmark of the computation of policies in miniature", () => {
  test("every cluster comes to its policies and groups", () => {
    const figures = [
      smallNamespaces(20),
      largeNamespaces(1),
      oneNamespace(30),
      policyPerPod(30),
      acrossNamespaces(2),
    ].map((workload) => measurePolicies(workload, 30));
    const counts = figures.map(({ namespaces, pods, policies, appliedToGroups, addressGroups }) => [
      ...[namespaces, pods, policies],
      ...[appliedToGroups, addressGroups],
    ]);
    expect(counts).toEqual([
      [20, 80, 60, 60, 40],
      [1, 1000, 101, 101, 100],
      [1, 30, 30, 1, 1],
      [1, 30, 30, 30, 30],
      [2, 200, 20, 20, 20],
    ]);
    for (const { computedMs, podEventP99Us, policyEventP99Us, peakBytes } of figures)
      expect(Math.min(computedMs, podEventP99Us, policyEventP99Us, peakBytes)).toBeGreaterThan(0);
    expect(policyTable(figures).split("\n")).toHaveLength(7);
  });
});
