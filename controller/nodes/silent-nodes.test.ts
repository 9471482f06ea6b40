import { expect, test } from "vitest";
import { SilentNodes } from "./silent-nodes.ts";

const node = (name: string, ready = "True") => ({
  metadata: { name },
  status: {
    conditions: [
      { type: "Ready", status: ready },
      { type: "Ipam", status: ready },
    ],
  },
});
const lease = (name: string, renewTime: string) => ({
  metadata: { name: `pipette-node.${name}` },
  spec: { renewTime },
});
const look = (objects: readonly object[], leases: readonly object[], nodes: readonly string[]) =>
  ({ objects, leases, nodes: new Set(nodes) }) as Parameters<SilentNodes["judge"]>[0];

test("a node is silent once its Lease has stood still for the whole time, by this process's own clock", () => {
  const silent = new SilentNodes(60_000);
  const at = (ms: number, renewed: string, ready = "True") =>
    silent.judge(look([node("a", ready)], [lease("a", renewed)], ["a"]), ms);
  // A time of its writer's that lies far behind says nothing.
  expect(at(0, "1970-01-01").silent).toEqual([]);
  expect(at(59_000, "1970-01-01").silent).toEqual([]);
  expect(at(59_500, "1970-01-02").silent).toEqual([]);
  expect(at(119_000, "1970-01-02").silent).toEqual([]);
  const late = at(119_500, "1970-01-02");
  expect(late).toMatchObject({ nodes: 1, silentNow: 1, remove: [] });
  expect(late.silent[0]?.conditions).toMatchObject([
    { type: "Ready", status: "Unknown", reason: "AgentSilent" },
    { type: "Ipam", status: "Unknown" },
  ]);
  // It is told once.
  expect(at(130_000, "1970-01-02", "Unknown")).toMatchObject({ silent: [], silentNow: 1 });
  expect(at(131_000, "1970-01-03", "Unknown")).toMatchObject({ silent: [], silentNow: 0 });
});

test("of a node that is gone all is taken away, but not while its agent still speaks", () => {
  const silent = new SilentNodes(10_000);
  const objects = [node("a"), node("b")];
  const all = (renewed: string) => look(objects, [lease("a", renewed), lease("b", "0"), lease("c", "0")], ["a"]);
  expect(silent.judge(all("1"), 0)).toMatchObject({ remove: [], removeLeases: [] });
  const later = silent.judge(all("2"), 10_000);
  expect(later).toMatchObject({
    remove: ["b"],
    removeLeases: ["pipette-node.b", "pipette-node.c"],
    nodes: 1,
    silentNow: 0,
  });
  const speaking = new SilentNodes(10_000);
  speaking.judge(look([node("b")], [lease("b", "1")], []), 0);
  expect(speaking.judge(look([node("b")], [lease("b", "2")], []), 20_000)).toMatchObject({ remove: [], nodes: 1 });
});

test("a Lease that is labelled as a node's and is somebody else's is left alone", () => {
  const silent = new SilentNodes(10_000);
  const foreign = { metadata: { name: "kube-scheduler" }, spec: { renewTime: "0" } };
  for (const nowMs of [0, 20_000])
    expect(silent.judge(look([], [foreign], []), nowMs)).toMatchObject({ removeLeases: [] });
});

test("an object without a Lease is given its time, and an agent that never wrote is not called silent twice", () => {
  const silent = new SilentNodes(1_000);
  const bare = { metadata: { name: "a" } };
  expect(silent.judge(look([bare], [], ["a"]), 0).silent).toEqual([]);
  expect(silent.judge(look([bare], [], ["a"]), 1_000).silent).toMatchObject([
    { name: "a", conditions: [{ type: "Ready" }] },
  ]);
});
