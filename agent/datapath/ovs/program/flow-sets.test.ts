import { expect, test } from "vitest";
import { type Flow, flow, group, match, output, toGroup } from "../../../protocols/openflow/mod.ts";
import { Category } from "../pipeline/cookie.ts";
import { keyFlowSet } from "./flow-set.ts";
import { FlowSets, type KeyedChanges } from "./flow-sets.ts";

const numbered = (priority: number, port = 1): Flow =>
  flow({ table: 5, priority, match: match().set("in_port", 2).build(), actions: [output(port)] });
const part = (key: string, flows: readonly Flow[], groups: readonly number[] = [], port = 1) =>
  keyFlowSet(
    key,
    { category: Category.pod, flows, groups: groups.map((id) => group(id, "select", [{ actions: [output(port)] }])) },
    1,
    7,
  );
const changes = (...of: readonly (readonly [string, ReturnType<typeof part> | undefined])[]): KeyedChanges =>
  new Map(of);

/** Priorities and ports of flows, and numbers of groups, that a change brings and takes. */
function told(parts: FlowSets, given: KeyedChanges): Record<string, readonly number[]> {
  const { addedFlows, deletedFlows, setGroups, deletedGroups } = parts.apply(given);
  const told = {
    added: addedFlows.map(({ priority }) => priority),
    deleted: deletedFlows.map(({ priority }) => priority),
    groups: setGroups.map(({ id }) => id),
    withoutGroups: deletedGroups,
  };
  return Object.fromEntries(Object.entries(told).filter(([, numbers]) => numbers.length > 0));
}

test("only what is different is told", () => {
  const parts = new FlowSets();
  expect(told(parts, changes(["a", part("a", [numbered(1), numbered(2)], [7])]))).toEqual({
    added: [1, 2],
    groups: [7],
  });
  expect(told(parts, changes(["a", part("a", [numbered(1), numbered(2)], [7])]))).toEqual({});
  expect(told(parts, changes(["a", part("a", [numbered(1), numbered(2, 9), numbered(3)], [7])]))).toEqual({
    added: [2, 3],
  });
  expect(told(parts, changes(["a", part("a", [numbered(3)], [8], 2)]))).toEqual({
    deleted: [1, 2],
    groups: [8],
    withoutGroups: [7],
  });
  expect(told(parts, changes(["a", undefined], ["never", undefined]))).toEqual({ deleted: [3], withoutGroups: [8] });
});

test("flows are counted by table, one that several parts have once", () => {
  const parts = new FlowSets();
  parts.apply(changes(["a", part("a", [numbered(1), numbered(2)])], ["b", part("b", [numbered(2)])]));
  expect([...parts.sizes]).toEqual([[5, 2]]);
  parts.apply(changes(["a", undefined]));
  expect([...parts.sizes]).toEqual([[5, 1]]);
});

test("a place that one part leaves another takes in the same change, in either order", () => {
  for (const order of [
    ["a", "b"],
    ["b", "a"],
  ] as const) {
    const parts = new FlowSets();
    parts.apply(changes(["a", part("a", [numbered(1)], [7])]));
    const moved = new Map([
      ["a", undefined],
      ["b", part("b", [numbered(1, 5), numbered(2)], [7])],
    ] as const);
    expect(told(parts, new Map(order.map((key) => [key, moved.get(key)])))).toEqual({ added: [1, 2] });
    expect([...parts.all.keys()]).toEqual(["b"]);
  }
});

test("a place of another is refused, and nothing has changed then", () => {
  const parts = new FlowSets();
  parts.apply(changes(["a", part("a", [numbered(1)], [7])], ["b", part("b", [numbered(2)])]));
  const before = new Map(parts.all);
  for (const wrong of [part("c", [numbered(3), numbered(1, 9)]), part("c", [toSeven], [7])]) {
    expect(() => parts.apply(changes(["b", undefined], ["c", wrong]))).toThrow('"a" has the place of its');
    expect(new Map(parts.all)).toEqual(before);
  }
  // What the refused change would have freed is still taken, and what it would have taken is free.
  expect(() => parts.apply(changes(["d", part("d", [numbered(2, 9)])]))).toThrow('"b" has');
  expect(told(parts, changes(["d", part("d", [numbered(3)])]))).toEqual({ added: [3] });
});

test("a change that is refused over a group leaves that group to who has it", () => {
  const parts = new FlowSets();
  parts.apply(changes(["a", part("a", [], [7])]));
  // Whatever the refused change had before, and whatever it claimed before it met the conflict.
  expect(() => parts.apply(changes(["b", part("b", [], [8, 7])]))).toThrow('"a" has the place of its group 7');
  expect([parts.hasGroup(7), parts.hasGroup(8)]).toEqual([true, false]);
  expect(() => parts.apply(changes(["c", part("c", [], [7])]))).toThrow('"a" has');
  // And goes with that one alone.
  expect(told(parts, changes(["b", part("b", [], [8])]))).toEqual({ groups: [8] });
  expect(told(parts, changes(["a", undefined]))).toEqual({ withoutGroups: [7] });
  expect([parts.hasGroup(7), parts.hasGroup(8)]).toEqual([false, true]);
});

const toSeven = flow({ table: 5, priority: 3, actions: [toGroup(7)] });

test("the same flow of two parts goes with the last of them", () => {
  for (const [first, last] of [
    ["a", "b"],
    ["b", "a"],
  ] as const) {
    const parts = new FlowSets();
    parts.apply(changes(["a", part("a", [numbered(1)])]));
    parts.apply(changes(["b", keyFlowSet("b", { category: Category.node, flows: [numbered(1), numbered(2)] }, 1, 8)]));
    expect(told(parts, changes([first, undefined]))["deleted"]).toEqual(first === "a" ? undefined : [2]);
    expect(told(parts, changes([last, undefined]))["deleted"]).toEqual(last === "a" ? [1] : [1, 2]);
    expect(told(parts, changes(["c", part("c", [numbered(1, 9)])]))).toEqual({ added: [1] });
  }
});

test("what takes a change back leads to the state before it", () => {
  const parts = new FlowSets();
  parts.apply(changes(["a", part("a", [numbered(1)])]));
  const { back } = parts.apply(changes(["a", part("a", [numbered(2)])], ["b", part("b", [numbered(1)])]));
  expect(told(parts, back)).toEqual({ deleted: [2] });
  expect([...parts.all.keys()]).toEqual(["a"]);
});

test("two flows of one part in one place are a fault of who made it", () => {
  expect(() => part("a", [numbered(1), numbered(1, 2)])).toThrow("two of its own have the place of flow");
  expect(() => part("a", [], [7, 7])).toThrow("group 7");
  // Another mask, another place.
  const narrow = match().protocol("ip").masked("ip_dst", 0x0a000000, 0xff000000).build();
  const wide = match().protocol("ip").masked("ip_dst", 0x0a000000, 0xfe000000).build();
  expect(part("a", [flow({ match: narrow }), flow({ match: wide })]).flows.size).toBe(2);
});
