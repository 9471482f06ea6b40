import { execa } from "execa";
import type { Work, Worked } from "./worker.ts";

const program = new URL("worker.ts", import.meta.url).pathname;

/** @throws where an allocation failed: a benchmark of failures would measure nothing */
export async function startWorker(work: Work): Promise<Worked> {
  const { stdout } = await execa(process.execPath, [program, JSON.stringify(work)], { env: { BUN_OPTIONS: "" } });
  return JSON.parse(stdout) as Worked;
}
