import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { random } from "../../support/random.ts";
import { loadTarget } from "../samples/targets.ts";
import { Fuzzer } from "./fuzzer.ts";
import { type Outcome, supervise } from "./supervise.ts";

// A fuzzer that finds nothing looks like a product without defects: each kind of defect is planted here and found.

const directory = mkdtempSync(join(tmpdir(), "pipette-fuzz-test-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const ask = (target: string, inputs: number, hangMs?: number): Promise<Outcome> =>
  supervise(
    {
      ...{ target, inputs, seed: 7, milliseconds: 60_000, foundDirectory: directory },
      ...{ keep: false, maxKept: 0, maxKeptBytes: 0, targets: join(import.meta.dirname, "../samples/targets.ts") },
    },
    undefined,
    hangMs,
  );

test("what new branches lead to is found, and kept as a file", { timeout: 90_000 }, async () => {
  const { defects, progress } = await ask("reader", 60_000);
  expect(defects.map(({ why }) => why.split("\n")[0])).toEqual(["TypeError: undefined is not an object"]);
  expect(readFileSync(defects[0]?.file ?? "", "latin1")).toMatch(/^DEEP/);
  expect(progress.reached).toBeGreaterThan(8);
});

test("by chance alone it is not", async () => {
  const target = await loadTarget("reader");
  const found: string[] = [];
  const fuzzer = new Fuzzer({
    target,
    opened: await target.open(),
    chance: random(7),
    before: () => undefined,
    onDefect: ({ kind }) => found.push(kind),
  });
  await fuzzer.seed(new TextEncoder().encode("none"));
  while (fuzzer.inputs < 60_000) await fuzzer.step();
  expect(found).toEqual([]);
});

test.each([
  ["hang", 3000, "no end after 2000 ms"],
  ["die", 3000, "the process ended: 3"],
  ["pollute", 3000, 'Object.prototype has a property "polluted" after this input'],
  ["leak", 3000, "The heap has grown"],
])("a target that does this is found out: %s", { timeout: 90_000 }, async (name, inputs, why) => {
  const { defects } = await ask(name, inputs, 2000);
  expect(defects.map((defect) => defect.why)).toEqual([expect.stringContaining(why)]);
  if (name !== "leak") expect(readFileSync(defects[0]?.file ?? "", "latin1")).toMatch(/^!/);
});
