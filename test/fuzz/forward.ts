import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { clang, compileFuzzer, compileLedFuzzer } from "../../build/forward.ts";

/**
 * `npm run fuzz:forward -- [--inputs N] [--seed N] [--led]`: answers for the small program of `forward/`, ten million
 * where nothing is said; `--led` by the branches that they reach, with libFuzzer.
 */
const { values } = parseArgs({
  options: {
    inputs: { type: "string", default: "10000000" },
    seed: { type: "string", default: "1" },
    led: { type: "boolean", default: false },
  },
});
const directory = join(import.meta.dirname, "../../dist/fuzz");
mkdirSync(directory, { recursive: true });
process.exitCode = values.led ? await led() : await made();

async function made(): Promise<number> {
  const program = join(directory, "forward");
  await compileFuzzer(program);
  return statusOf(program, [values.inputs, values.seed]);
}

async function led(): Promise<number> {
  if (!existsSync(clang)) {
    console.error(`Cannot lead the fuzzer: "${clang}" is missing (Debian packages clang-14 and libclang-rt-14-dev)`);
    return 2;
  }
  const program = join(directory, "forward-led");
  await compileLedFuzzer(program);
  // An input that shows a defect is left there.
  const found = `-artifact_prefix=${join(directory, "forward-")}`;
  return statusOf(program, [`-runs=${values.inputs}`, `-seed=${values.seed}`, "-max_len=512", found]);
}

function statusOf(program: string, words: readonly string[]): number {
  return spawnSync(program, words, { stdio: "inherit" }).status === 0 ? 0 : 1;
}
