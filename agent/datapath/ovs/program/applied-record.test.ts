import { expect, test } from "vitest";
import { AppliedRecord } from "./applied-record.ts";

type Step = (record: AppliedRecord<number>) => unknown;
const set =
  (key: string, value: number): Step =>
  (record) =>
    record.set(key, value);

/** What the record says of "a", whose value is asked for as 1. */
const said = (record: AppliedRecord<number>) => ({
  isApplied: record.isApplied("a", (value) => value === 1),
  value: record.get("a"),
  dirty: [...record.dirty()].map(([key]) => key),
  refusals: [...record.refusals.values()],
});
const nothing = { isApplied: false, value: undefined, dirty: [], refusals: [] };
const applied = { isApplied: true, value: 1, dirty: [], refusals: [] };

test.each<[string, readonly Step[], ReturnType<typeof said>]>([
  ["what was never given is not applied", [], nothing],
  ["what was given is taken for applied", [set("a", 1)], applied],
  ["another value is not", [set("a", 2)], { ...applied, isApplied: false, value: 2 }],
  ["what is taken away is given again", [set("a", 1), (record) => record.delete("a")], nothing],
  [
    "what may have come to nothing is given again, and known until it is taken away",
    [set("a", 1), (record) => record.markDirty(["a", "never"])],
    { ...applied, isApplied: false, dirty: ["a"] },
  ],
  ["given again it is clean", [set("a", 1), (record) => record.markDirty(["a"]), set("a", 1)], applied],
  [
    "all may have come to nothing",
    [set("a", 1), set("b", 2), (record) => record.markDirty()],
    { ...applied, isApplied: false, dirty: ["a", "b"] },
  ],
  [
    "what is refused is dirty, and says why",
    [set("a", 1), (record) => record.refuse("a", "full")],
    { isApplied: false, value: 1, dirty: ["a"], refusals: ["full"] },
  ],
  [
    "the refusal stands until it is taken, not until it is given again",
    [set("a", 1), (record) => record.refuse("a", "full"), set("a", 1)],
    { ...applied, refusals: ["full"] },
  ],
  [
    "what is taken is refused no longer",
    [set("a", 1), (record) => record.refuse("a", "full"), set("a", 1), (record) => record.confirm(["a"])],
    applied,
  ],
  [
    "what is taken away is refused no longer",
    [set("a", 1), (record) => record.refuse("a", "full"), (record) => record.delete("a")],
    nothing,
  ],
  [
    "a refusal of what was taken away meanwhile is nobody's",
    [set("a", 1), (record) => record.delete("a"), (record) => record.refuse("a", "full")],
    nothing,
  ],
])("%s", (_what, steps, expected) => {
  const record = new AppliedRecord<number>();
  for (const step of steps) step(record);
  expect(said(record)).toEqual(expected);
});

test("only what the program may have something of is to be taken away", () => {
  const record = new AppliedRecord<number>();
  expect(record.delete("a")).toBe(false);
  record.set("a", 1);
  record.markDirty();
  expect([...record.entries()]).toEqual([["a", 1]]);
  expect(record.delete("a")).toBe(true);
});
