import { spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { compileFuzzer } from "../../build/forward.ts";

/** `npm run fuzz:forward -- [--inputs N] [--seed N]`: answers for the small program of `forward/`, ten million where nothing is said. */
const { values } = parseArgs({
  options: { inputs: { type: "string", default: "10000000" }, seed: { type: "string", default: "1" } },
});
const directory = join(import.meta.dirname, "../../dist/fuzz");
mkdirSync(directory, { recursive: true });
const program = join(directory, "forward");
await compileFuzzer(program);
const { status } = spawnSync(program, [values.inputs, values.seed], { stdio: "inherit" });
process.exitCode = status === 0 ? 0 : 1;
