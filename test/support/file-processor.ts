import { afterAll } from "vitest";
import { isWindows } from "../../shared/os/platform.ts";
import { processorMs } from "./processor-time.ts";

declare module "vitest" {
  interface TaskMeta {
    /** Processor time of a test file: its process and those that it has started and that have ended, in milliseconds. */
    processorMs?: number;
  }
}

// Loaded in front of every test file, so that this hook is the last one. What detaches itself is not counted.
// biome-ignore lint/correctness/noEmptyPattern: vitest reads the parameter's text, and wants a pattern.
afterAll(({}, file) => {
  if (!isWindows) file.meta.processorMs = processorMs(process.pid);
});
