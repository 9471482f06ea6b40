import { expect, test } from "vitest";
import { StableIds } from "./stable-ids.ts";

test("a key has the same number in every process, and no two keys have one", () => {
  const [first, second] = [new StableIds(), new StableIds()];
  const keys = Array.from({ length: 20_000 }, (_, i) => `service/ns-${i % 7}/name-${i}:http`);
  const given = keys.map((key) => first.of(key));
  expect(new Set(given).size).toBe(keys.length);
  expect(Math.min(...given)).toBeGreaterThan(0);
  expect(Math.max(...given)).toBeLessThan(0xffffff00);
  expect(keys.map((key) => second.of(key))).toEqual(given);
  expect(keys.map((key) => first.of(key))).toEqual(given);
});

test("keys with one hash get numbers side by side, and a released number is free again", () => {
  const ids = new StableIds();
  // Known to collide in FNV-1a.
  const [a, b] = ["costarring", "liquid"].map((key) => ids.of(key));
  expect(b).toBe((a ?? 0) + 1);
  ids.release("costarring");
  ids.release("liquid");
  expect(ids.of("liquid")).toBe(a);
});
