import { readFileSync } from "node:fs";

/** The kernel counts in these. */
export const processorTickMs = 10;

/** Processor time of a process, and of those that it has started and that have ended, in milliseconds. */
export function processorMs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) * processorTickMs;
}
