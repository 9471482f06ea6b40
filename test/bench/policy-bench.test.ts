import { describe, expect, test } from "vitest";
import { describeWith } from "../support/requires.ts";
import { addTable, measureAdds } from "./policies/measure-adds.ts";
import { measurePolicies, policyTable } from "./policies/measure-policies.ts";
import { measureSnapshot, snapshotTable } from "./policies/measure-snapshot.ts";
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

describeWith("the benchmark of ADDs with policies in miniature", ["linux", "root", "openssl", "nft"], () => {
  test("as many with as without", async () => {
    const figures = await measureAdds(4, 2);
    expect([figures.with.n, figures.without.n]).toEqual([4, 4]);
    expect(Math.min(figures.with.min, figures.without.min)).toBeGreaterThan(0);
    expect(addTable(figures).split("\n")).toHaveLength(5);
  });
});

test("the benchmark of the snapshot in miniature reads all that it has written", async () => {
  const figures = await measureSnapshot(smallNamespaces(20));
  expect(figures).toMatchObject({ pods: 80, policies: 60 });
  expect(Math.min(figures.bytes, figures.writeMs, figures.readMs)).toBeGreaterThan(0);
  expect(snapshotTable(figures).split("\n")).toHaveLength(3);
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
