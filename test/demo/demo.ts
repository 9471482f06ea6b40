import { spawnSync } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { isInside, runInside } from "../support/own-network.ts";
import { Screen, StepFailed } from "./screen.ts";
import { showOverlay } from "./show-overlay.ts";
import { showPods } from "./show-pods.ts";

// `npm run demo`: what a container runtime does with Pipette, on a node of its own; `npm run demo -- --overlay`: what
// pods of two nodes have from it.

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const executables = join(root, "dist", "linux-x64");
const overlay = process.argv.includes("--overlay");

if (overlay && !isInside()) {
  const setUp = spawnSync("sh", [join(root, "build", "setup.sh"), "overlay"], { stdio: "inherit" });
  if (setUp.status !== 0) process.exit(setUp.status ?? 1);
}
const status = await runInside();
if (status === undefined) {
  try {
    await (overlay ? showOverlay(new Screen()) : showPods(executables, new Screen()));
  } catch (caught) {
    if (!(caught instanceof StepFailed)) throw caught;
    console.error(`\nThe demo ended at "${caught.step}": ${caught.message}`);
    process.exitCode = 1;
  }
} else {
  process.exitCode = status;
}
