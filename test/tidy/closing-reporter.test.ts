import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { describe, expect, test } from "vitest";

// The report decides whether a change lands, so what it says of failures and skips is tested like anything else.

function report(...samples: readonly string[]): { status: number | null; lines: readonly string[] } {
  const files = samples.map((name) => `test/tidy/samples/${name}.sample.ts`);
  const run = spawnSync(process.execPath, ["--bun", join(import.meta.dirname, "samples/run-samples.ts"), ...files], {
    encoding: "utf8",
    env: { ...process.env, NO_COLOR: "1" },
  });
  return { status: run.status, lines: run.stdout.trimEnd().split("\n") };
}

describe("the report of a run", () => {
  test("counts, names every failure and every skip with its reason, and closes with the three numbers", () => {
    const { status, lines } = report("mixed");
    expect(status).toBe(1);
    expect(lines.at(-1)).toBe("1 passed, 2 failed, 1 skipped");
    expect(lines).toContain("FAIL test/tidy/samples/mixed.sample.ts > fails");
    expect(lines.join("\n")).toMatch(/expected 'is' to be 'should be'/);
    const file = lines.findIndex((line) => line.startsWith("FAIL test/tidy/samples/mixed.sample.ts ("));
    expect(lines[file + 1]).toBe("  FAIL test/tidy/samples/mixed.sample.ts > fails");
    expect(lines.slice(-4, -1)).toEqual([
      "Skipped:",
      "  test/tidy/samples/mixed.sample.ts > cannot run: the moon is not full",
      "",
    ]);
  });

  test("takes a skip without a reason for a failure", () => {
    const { lines } = report("mixed");
    expect(lines).toContain("FAIL test/tidy/samples/mixed.sample.ts > is skipped in silence");
  });

  test("says why a group did not even begin", () => {
    const { status, lines } = report("no-setup");
    expect(status).toBe(1);
    expect(lines.at(-1)).toBe("0 passed, 1 failed, 1 skipped");
    expect(lines.join("\n")).toMatch(/FAIL .*no-setup.sample.ts > a group\nno setup today/);
    expect(lines.join("\n")).toMatch(/waits for it: its group could not be set up/);
  });

  test("a run of nothing has not succeeded", () => {
    const { status, lines } = report("there-is-none");
    expect(status).toBe(1);
    expect(lines.at(-1)).toBe("0 passed, 0 failed, 0 skipped");
  });
});
