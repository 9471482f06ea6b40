import { expect, test } from "vitest";
import { allocatorInMemory, configOf, five } from "../../test/fakes/allocator-in-memory.ts";

const threeRanges = configOf({
  ranges: [
    [
      { subnet: "10.0.0.0/24", rangeStart: "10.0.0.2", rangeEnd: "10.0.0.3" },
      { subnet: "10.0.1.0/24", rangeStart: "10.0.1.2", rangeEnd: "10.0.1.4" },
      { subnet: "10.0.2.0/24", rangeStart: "10.0.2.2", rangeEnd: "10.0.2.3" },
    ],
  ],
  cooldownMs: 1000,
});

test("goes on after the last address through all ranges of the set and round again", () => {
  const { add } = allocatorInMemory();
  expect(add("first", { ...threeRanges, requested: [{ family: 4, value: 0x0a000103n }] })).toBe("10.0.1.3");
  expect(["a", "b", "c", "d", "e", "f"].map((id) => add(id, threeRanges))).toEqual([
    ...["10.0.1.4", "10.0.2.2", "10.0.2.3"],
    ...["10.0.0.2", "10.0.0.3", "10.0.1.2"],
  ]);
});

const ids = ["a", "b", "c", "d", "e", "f", "g"];

test.each([
  ["in their order", ids],
  ["from the end", ids.toReversed()],
  ["in the middle first", ["d", "b", "f", "a", "g", "c", "e"]],
])("where all cool, the one that cools longest comes first, of whichever range: %s", (_, order) => {
  const { add, del, clock } = allocatorInMemory();
  const had = new Map(ids.map((id) => [id, add(id, threeRanges)]));
  for (const id of order) {
    clock.ms++;
    del(id);
  }
  expect(order.map((id) => add(`${id}2`, threeRanges))).toEqual(order.map((id) => had.get(id)));
});

test("also where more than one look finds cools for another range set of the network, and longer", () => {
  const { add, del, clock } = allocatorInMemory();
  const other = configOf({ subnet: "10.1.0.0/24", cooldownMs: 1000 });
  const others = Array.from({ length: 20 }, (_, i) => `other${i}`);
  const own = ids.slice(0, 5);
  for (const id of others) add(id, other);
  const had = new Map(own.map((id) => [id, add(id)]));
  for (const id of [...others, ...own.toReversed()]) {
    clock.ms++;
    del(id);
  }
  expect(own.toReversed().map((id) => add(`${id}2`))).toEqual(own.toReversed().map((id) => had.get(id)));
});

test.each([7, 8, 9, 20])("also where a look at %i addresses in their order would end before it", (count) => {
  const { add, del, clock } = allocatorInMemory();
  const [other, own] = [configOf({ subnet: "10.1.0.0/24" }), configOf({ subnet: "10.2.0.0/24" })];
  const others = Array.from({ length: 9 }, (_, i) => `other${i}`);
  for (const id of others) add(id, other);
  const windows = Array.from({ length: count }, (_, i) => `own${i}`);
  const end = `10.2.0.${count + 1}`;
  const full = configOf({ ranges: [[{ subnet: "10.2.0.0/24", rangeEnd: end }]] });
  for (const id of windows) add(id, own);
  for (const id of [...others, ...windows.toReversed()]) {
    clock.ms++;
    del(id);
  }
  // The one with the highest address has left first.
  expect(add("next", full)).toBe(end);
});

test("of two that were left at the same moment the one that was given first", () => {
  const { add, del } = allocatorInMemory();
  const had = ids.slice(0, 5).map((id) => add(id));
  for (const id of ["c", "a", "e", "b", "d"]) del(id);
  expect(ids.slice(0, 5).map((id) => add(`${id}2`))).toEqual(had);
});

test("a set is exhausted where an ADD finds nothing: neither free nor cooling", () => {
  const { allocator, add, del } = allocatorInMemory();
  expect(allocator.exhausted("net", five)).toEqual([]);
  for (const id of ids.slice(0, 5)) add(id);
  expect(allocator.exhausted("net", five)).toMatchObject([{ total: 5n, used: 5, free: 0n }]);
  del("c");
  expect(allocator.exhausted("net", five)).toEqual([]);
});
