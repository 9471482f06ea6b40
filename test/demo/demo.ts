import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { runInside } from "../support/own-network.ts";
import { Screen, StepFailed } from "./screen.ts";
import { showPods } from "./show-pods.ts";

// `npm run demo`: what a container runtime does with Pipette, on a node of its own.

const executables = join(dirname(dirname(dirname(fileURLToPath(import.meta.url)))), "dist", "linux-x64");

const status = await runInside();
if (status === undefined) {
  try {
    await showPods(executables, new Screen());
  } catch (caught) {
    if (!(caught instanceof StepFailed)) throw caught;
    console.error(`\nThe demo ended at "${caught.step}": ${caught.message}`);
    process.exitCode = 1;
  }
} else {
  process.exitCode = status;
}
