import { execFileSync } from "node:child_process";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { describeWith } from "../test/support/requires.ts";
import { scratchDir } from "../test/support/scratch-dir.ts";
import { compileSmallProgram } from "./forward.ts";

const buildId = "000102030405060708090a0b0c0d0e0f";

describeWith("the small program as it is delivered", ["linux", "gcc", "musl"], () => {
  test("is static and hardened, and small", async () => {
    using directory = scratchDir();
    const outfile = join(directory.path, "forward");
    await compileSmallProgram({ system: "linux", outfile, buildId });
    const told = execFileSync("readelf", ["-hldW", outfile], { encoding: "utf8" });
    expect(told).toMatch(/Type: +DYN/);
    expect(told).toMatch(/GNU_RELRO/);
    expect(told).toMatch(/FLAGS_1\) +Flags: NOW PIE/);
    expect(told).toMatch(/GNU_STACK +\S+ \S+ \S+ \S+ \S+ RW /);
    expect(told).not.toMatch(/INTERP|NEEDED|RWE/);
    expect(statSync(outfile).size).toBeLessThan(64 * 1024);
  });

  test("is the same bytes each time, with the build id in them", () => isReproducible("linux", ""));
});

describeWith("the small program for Windows", ["linux", "mingw"], () => {
  test("is the same bytes each time, with the build id in them", () => isReproducible("windows", ".exe"));
});

async function isReproducible(system: "linux" | "windows", suffix: string): Promise<void> {
  using directory = scratchDir();
  const outfiles = ["a", "b"].map((name) => join(directory.path, name + suffix));
  for (const outfile of outfiles) await compileSmallProgram({ system, outfile, buildId });
  const [first, second] = outfiles.map((path) => readFileSync(path));
  expect(first?.equals(second ?? Buffer.alloc(0))).toBe(true);
  // Compilers put it into instructions, eight bytes at a time.
  for (const half of [buildId.slice(0, 16), buildId.slice(16)])
    expect(first?.includes(Buffer.from(half, "hex")), half).toBe(true);
}
