import { beforeEach, expect, test } from "vitest";
import type { Changes } from "../policy/mod.ts";
import { type NodeReport, PolicyReports } from "./policy-reports.ts";

let reports: PolicyReports;
beforeEach(() => {
  reports = new PolicyReports();
});

function happen(t: "added" | "updated" | "deleted", uid: string, ...left: readonly string[]): void {
  const policies = [{ t, policy: { uid }, nodes: { left } }];
  reports.follow({ policies } as unknown as Pick<Changes, "policies">);
}
const report = (nodeName: string, message = ""): NodeReport => ({
  nodeName,
  generation: 1,
  realizationFailure: message !== "",
  message,
});
const packets = (count: number) => ({ packets: count, bytes: 10 * count, sessions: 2 * count });
const nodes = (uid = "p") => reports.nodesOf(uid).map(({ nodeName, message }) => `${nodeName} ${message}`.trim());

test("what nodes tell is kept of policies that there are, and goes with them and with the node", () => {
  reports.enforced("p", report("n1"));
  reports.count("p", packets(1));
  expect([reports.has("p"), nodes(), reports.trafficOf("p")]).toEqual([false, [], undefined]);
  happen("added", "p");
  expect(reports.trafficOf("p")).toEqual(packets(0));
  reports.enforced("p", report("n1"));
  reports.enforced("p", report("n2"));
  reports.enforced("p", report("n1", "no room"));
  reports.count("p", packets(3));
  reports.count("p", packets(4));
  happen("updated", "p");
  expect([nodes(), reports.trafficOf("p")]).toEqual([["n1 no room", "n2"], packets(7)]);
  happen("updated", "p", "n1", "n9");
  expect(nodes()).toEqual(["n2"]);
  happen("deleted", "p", "n2");
  expect([reports.has("p"), nodes()]).toEqual([false, []]);
  happen("added", "p");
  expect([nodes(), reports.trafficOf("p")]).toEqual([[], packets(0)]);
});

test.each(["packets", "bytes", "sessions"] as const)("nobody takes away %s that others have counted", (what) => {
  happen("added", "p");
  reports.count("p", packets(3));
  reports.count("p", { ...packets(0), [what]: -5 });
  expect(reports.trafficOf("p")).toEqual(packets(3));
});

test("a node's message is a sentence, and there are no more nodes than a cluster has", () => {
  happen("added", "p");
  for (let i = 0; i < 10_001; i++) reports.enforced("p", report(`n${i}`));
  expect(reports.nodesOf("p")).toHaveLength(10_000);
  reports.enforced("p", report("n0", "x".repeat(600)));
  expect(reports.nodesOf("p")[0]?.message).toBe("x".repeat(512));
});
