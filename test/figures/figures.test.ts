import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { figuresPage } from "./page.ts";
import { type Run, runOf } from "./runs.ts";

const root = join(import.meta.dirname, "../..");
const runs = readFileSync(join(root, "test/figures/runs.jsonl"), "utf8")
  .trim()
  .split("\n")
  .map((line) => JSON.parse(line) as Run);

test("the page is what the kept runs make", () => {
  expect(readFileSync(join(root, "docs/reliability-figures.md"), "utf8")).toBe(figuresPage(runs));
});

const verbs = [{ verb: "ADD", n: 2, p50: 10.4, p99: 1999.6, max: 2000.2, deadline: 40_000 }];
const date = "2026-11-23T01:02:03.000Z";

test("a soak's line becomes a run", () => {
  const line = {
    date,
    dataPath: "ovs",
    seed: 7,
    seconds: 120,
    calls: 2,
    verbs,
    faults: { a: 1, b: 2 },
    looks: 3,
    wrong: ["x"],
  };
  const run = runOf(JSON.stringify(line));
  expect(run).toEqual({
    ...{ of: "soak", date: "2026-11-23", dataPath: "ovs", seed: 7, minutes: 2, calls: 2 },
    ...{ faults: 3, faultKinds: 2, looks: 3, wrong: 1, longestMs: { ADD: 2000 } },
  });
  expect(figuresPage([run])).toContain("| 2026-11-23 | ovs | 7 | 2 | 2 | 3 of 2 kinds | 3 | 1 | 2.0, –, – s |  |");
});

test("a storm's line becomes a run", () => {
  const run = runOf(
    JSON.stringify({ date, storm: "a crowd", of: "pipette", pods: 2, seconds: 3.14, verbs, wrong: [] }),
  );
  expect(figuresPage([run])).toContain(
    "| 2026-11-23 | a crowd | pipette | 3.1 s | ADD | 10 ms | 2,000 ms | 2,000 ms | 0 |",
  );
});

test("a fuzzed boundary becomes a run", () => {
  const run = runOf(JSON.stringify({ date, boundary: "json", seed: 7, inputs: 1000, branches: 20, defects: 1 }));
  expect(figuresPage([run])).toContain("| 2026-11-23 | json | 7 | 1,000 | 20 | 1 |");
});

test("anything else is refused", () => {
  expect(() => runOf(JSON.stringify({ date }))).toThrow("is of no soak, storm or fuzz");
});
