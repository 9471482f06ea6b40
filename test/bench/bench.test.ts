import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { compileExecutables, executables } from "../conformance/plugin.ts";
import { NetworkSandbox } from "../support/network-sandbox.ts";
import { describeWith } from "../support/requires.ts";
import { Launcher } from "./launch/launcher.ts";
import { measureAll } from "./measure-all.ts";
import { jsonLines, table } from "./report.ts";
import { compare, compareInBothStates, passes, type Row } from "./row.ts";
import { summarize } from "./stats.ts";

describeWith("the benchmark in miniature", ["root", "cni-plugins", "musl", "nft"], () => {
  const scratch = mkdtempSync(join(tmpdir(), "pipette-bench-test-"));
  let node: NetworkSandbox;
  let rows: readonly Row[] = [];

  beforeAll(async () => {
    compileExecutables();
    node = await NetworkSandbox.enter("ptb-");
    rows = await measureAll({
      dist: executables,
      launcher: await Launcher.compile(scratch),
      peers: "/usr/lib/cni",
      scratch,
      rounds: 2,
      fills: [0, 300],
      pods: 12,
      residentPods: 12,
      progress: () => undefined,
    });
  });

  afterAll(async () => {
    await node?.[Symbol.asyncDispose]();
    rmSync(scratch, { recursive: true, force: true });
  });

  test("every budget of the design gets a figure", () => {
    const inBothStates = (...measures: string[]): string[] =>
      ["read", "faulted"].flatMap((cache) => measures.map((measure) => `${measure}, ${cache}`));
    const slowest = /p99 of an ADD: .*ms/;
    expect(rows.map(({ measure, cache = "-" }) => `${measure.replace(slowest, "p99")}, ${cache}`)).toEqual([
      ...inBothStates("exec to exit, VERSION"),
      ...inBothStates("  the whole program"),
      ...inBothStates("pipette-ipam ADD, 0 leases"),
      ...inBothStates("  the least Bun can do, 0 leases"),
      ...inBothStates("pipette-ipam ADD, 300 leases"),
      ...inBothStates("  the least Bun can do, 300 leases"),
      ...inBothStates("pipette-ipam ADD, by a service"),
      ...inBothStates("whole pod, ADD + DEL", "  ADD alone", "  DEL alone"),
      "peak memory of a call, -",
      ...inBothStates("whole pod by the whole program", "  ADD alone", "  DEL alone"),
      "plugin to agent and back, -",
      ...inBothStates("12 pods at once, ADD + DEL", "  p99"),
      "calls lost in the crowd, -",
      "addresses doubled in the crowd, -",
      "agent's resident memory, 12 pods, -",
      ...inBothStates("whole pod, after many others", "  ADD alone", "  DEL alone"),
    ]);
    // The kernel counts a small process's memory in steps, the first of which may not be reached.
    const isFigure = ({ unit, measure }: Row) =>
      unit === "count" || measure.startsWith("peak") ? isCount : isPositive;
    for (const row of rows) expect(row.value, row.measure).toSatisfy(isFigure(row));
  });

  test("nothing is lost and nothing is doubled", () => {
    expect(rows.filter((row) => row.unit === "count").map((row) => row.value)).toEqual([0, 0]);
  });

  test("both reports hold every row", () => {
    for (const row of rows) expect(table(rows)).toContain(row.measure);
    const lines = jsonLines(rows, { pipette: "x" }).split("\n");
    expect(lines.map((line) => JSON.parse(line).measure)).toEqual(rows.map((row) => row.measure));
    expect(JSON.parse(lines[0] ?? "")).toMatchObject({
      machine: { cores: expect.any(Number) },
      versions: { pipette: "x" },
    });
  });
});

const isPositive = (value: number): boolean => Number.isFinite(value) && value > 0;
const isCount = (value: number): boolean => Number.isFinite(value) && value >= 0;

test("a comparison takes both sides in turn, and leaves the first round out", async () => {
  const order: string[] = [];
  const side =
    (name: string, values: readonly number[]) =>
    (round: number): number => {
      order.push(name);
      return values[round] ?? Number.NaN;
    };
  const row = await compare({
    measure: "m",
    budget: 0.5,
    aim: 0.4,
    rounds: 3,
    ours: side("ours", [900, 1, 3, 2]),
    peer: side("peer", [900, 4, 4, 4]),
    peerName: "p",
  });
  expect(order).toEqual(["ours", "peer", "peer", "ours", "ours", "peer", "peer", "ours"]);
  expect(row.value).toBe(0.5);
  expect(passes(row)).toBe(true);
  expect(passes({ ...row, value: 0.51 })).toBe(false);
});

test("median and percentiles are by rank", () => {
  expect(summarize([5, 1, 4, 2, 3, 10, 6, 7, 8, 9])).toEqual({ n: 10, median: 6, p90: 10, p99: 10, min: 1, max: 10 });
});

test("in both states of the page cache, and held to the budget where it is to hold", async () => {
  const scratch = mkdtempSync(join(tmpdir(), "pipette-bench-test-"));
  const executable = join(scratch, "file");
  writeFileSync(executable, "x".repeat(10_000));
  const comparison = { measure: "m", budget: 1, aim: 0.5, rounds: 1, ours: () => 3, peer: () => 2, peerName: "p" };
  const besides = (): readonly Row[] => [{ measure: "  more", unit: "ms", value: 7 }];
  const rows = await compareInBothStates({ ...comparison, executables: [executable], heldIn: ["read"] }, besides);
  rmSync(scratch, { recursive: true });
  expect(rows.map(({ measure, cache, budget }) => [measure, cache, budget])).toEqual([
    ["m", "read", 1],
    ["  more", "read", undefined],
    ["m", "faulted", undefined],
    ["  more", "faulted", undefined],
  ]);
  expect(rows.map(passes)).toEqual([false, true, true, true]);
});
