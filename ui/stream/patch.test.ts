import { describe, expect, test } from "vitest";
import { patched, stepsBetween } from "./patch.ts";

const pod = (name: string, address = "10.0.0.1"): object => ({ name, address });

describe("the steps from one document to another", () => {
  test.each([
    ["nothing", { pods: [pod("a")], of: "n" }, { pods: [pod("a")], of: "n" }, 0],
    ["a row that comes at the end", { pods: [pod("a")] }, { pods: [pod("a"), pod("b")] }, 1],
    ["a row that comes at the head", { pods: [pod("b")] }, { pods: [pod("a"), pod("b")] }, 1],
    ["a row that goes", { pods: [pod("a"), pod("b"), pod("c")] }, { pods: [pod("a"), pod("c")] }, 1],
    ["a row that changes", { pods: [pod("a"), pod("b")] }, { pods: [pod("a"), pod("b", "::1")] }, 1],
    ["all rows", { pods: [pod("a")] }, { pods: [] }, 1],
    ["the same row twice", { pods: [pod("a"), pod("a")] }, { pods: [pod("a")] }, 1],
    ["keys that come and go", { a: 1, b: { c: 2 } }, { b: { c: 3 }, d: undefined }, 3],
    ["a list that becomes none", { a: [1] }, { a: "1" }, 1],
  ])("lead there: %s", (_, before, after, count) => {
    const steps = stepsBetween(before, after);
    expect(steps).toHaveLength(count);
    expect(patched(before, JSON.parse(JSON.stringify(steps)))).toEqual(JSON.parse(JSON.stringify(after)));
  });

  test("change nothing of the document before", () => {
    const before = Object.freeze({ pods: Object.freeze([pod("a")]) });
    patched(before, stepsBetween(before, { pods: [] }));
    expect(before).toEqual({ pods: [pod("a")] });
  });

  test("lead there from any document to any other", () => {
    let seed = 7;
    const random = (below: number): number => {
      seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
      return seed % below;
    };
    const rows = (): unknown[] => Array.from({ length: random(9) }, () => random(4));
    for (let i = 0; i < 2_000; i++) {
      const [before, after] = [
        { rows: rows(), n: random(3) },
        { rows: rows(), n: random(3) },
      ];
      expect(patched(before, stepsBetween(before, after))).toEqual(after);
    }
  });

  test("do not fit another list", () => {
    const steps = stepsBetween({ pods: [pod("a"), pod("b")] }, { pods: [pod("a")] });
    expect(() => patched({ pods: [] }, steps)).toThrow('it is of another list "pods"');
  });
});
