import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { compileFuzzer, compileLedFuzzer } from "../build/forward.ts";
import { describeWith } from "../test/support/requires.ts";
import { scratchDir } from "../test/support/scratch-dir.ts";

describeWith("streams of the fuzzer's own making", ["linux", "gcc"], () => {
  test("end each call as PROTOCOL.md says, and break no rule of C", async () => {
    using directory = scratchDir();
    const program = join(directory.path, "fuzz");
    await compileFuzzer(program);
    const { stdout } = await promisify(execFile)(program, ["200000", "1"]);
    const counts = /^delivered (\d+), unasked (\d+), lost (\d+), as it came (\d+)\n$/
      .exec(stdout)
      ?.slice(1)
      .map(Number);
    // Each end is reached, and by far more than one stream.
    expect(Math.min(...(counts ?? [0]))).toBeGreaterThan(1000);
  });
});

describeWith("streams that libFuzzer leads", ["linux", "clang"], () => {
  test("end each call as PROTOCOL.md says, and break no rule of C", async () => {
    using directory = scratchDir();
    const program = join(directory.path, "fuzz");
    await compileLedFuzzer(program);
    const { stderr } = await promisify(execFile)(program, ["-runs=20000", "-seed=1", "-max_len=512"], {
      cwd: directory.path,
    });
    expect(stderr).toContain("Done 20000 runs");
  });
});
