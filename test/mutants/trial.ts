import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Mutant } from "./mutations.ts";

export type Ending = "passed" | "failed" | "timed out";

export interface Trial {
  readonly ending: Ending;
  readonly seconds: number;
  /** What the tests said, in the end. */
  readonly said: string;
}

const root = join(import.meta.dirname, "../..");
const keptChars = 20_000;
/** Until one test fails. */
const manner = ["--bail", "1", "--maxWorkers", "1"];

/**
 * All in one process, as to start one for each file takes longer than most tests; but where one puts a double in the place
 * of a module, the files behind it would have that too, or it what those before have loaded.
 */
const mannerOf = (tests: readonly string[]): readonly string[] =>
  tests.some((test) => readFileSync(join(root, test), "utf8").includes("vi.mock("))
    ? manner
    : [...manner, "--no-isolate"];

/** Runs these tests with the mutant in place, or with none, in processes of their own that end with it. */
export function runTests(tests: readonly string[], mutant: Mutant | undefined, seconds: number): Promise<Trial> {
  const started = performance.now();
  const config = "test/mutants/vitest.config.mts";
  const args = ["--bun", "node_modules/.bin/vitest", "run", "--config", config, "--root", root, ...mannerOf(tests)];
  const env: NodeJS.ProcessEnv = { ...process.env, NO_COLOR: "1" };
  if (mutant !== undefined) env["PIPETTE_MUTANT"] = JSON.stringify(mutant);
  // A group of its own: a mutant that never ends keeps a worker busy that hears of nothing.
  const child = spawn(process.execPath, [...args, ...tests], { cwd: root, env, detached: true, stdio: "pipe" });
  const end = (): void => {
    try {
      process.kill(-(child.pid ?? Number.NaN), "SIGKILL");
    } catch {
      // It has ended by itself.
    }
  };
  process.once("exit", end);
  let said = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (bytes) => {
      said = (said + String(bytes)).slice(-keptChars);
    });
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    end();
  }, seconds * 1000);
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (status) => {
      clearTimeout(timer);
      process.off("exit", end);
      const ending = isLate ? "timed out" : status === 0 ? "passed" : "failed";
      resolve({ ending, seconds: (performance.now() - started) / 1000, said });
    });
  });
}
