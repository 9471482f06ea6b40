import { beforeEach, expect, test } from "vitest";
import type { Changes } from "../policy/mod.ts";
import { PolicyReports, type TimedReport } from "./policy-reports.ts";

let reports: PolicyReports;
beforeEach(() => {
  reports = new PolicyReports();
});

function happen(t: "added" | "updated" | "deleted", uid: string, ...left: readonly string[]): void {
  const span = { has: (node: string) => node !== "elsewhere" && !left.includes(node) };
  const policies = [{ t, policy: { uid }, nodes: { left }, span }];
  reports.follow({ policies } as unknown as Pick<Changes, "policies">);
}
const report = (nodeName: string, message = "", reportedAtMs = 1): TimedReport => ({
  nodeName,
  generation: 1,
  realizationFailure: message !== "",
  message,
  reportedAtMs,
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

test("the newer of two reports of a node holds, in whatever order they come", () => {
  happen("added", "p");
  reports.enforced("p", report("n1", "newer", 7));
  expect(reports.enforced("p", report("n1", "older", 6))).toBe(true);
  expect(nodes()).toEqual(["n1 newer"]);
  reports.enforced("p", report("n1", "newest", 8));
  expect(nodes()).toEqual(["n1 newest"]);
});

test("nothing is kept of a node that a policy does not concern, or no more", () => {
  happen("added", "p");
  expect([reports.enforced("p", report("elsewhere")), reports.enforced("p", report("n1"))]).toEqual([false, true]);
  happen("updated", "p", "n1");
  expect([reports.enforced("p", report("n1")), nodes()]).toEqual([false, []]);
});
