import { readFileSync } from "node:fs";

/** The process that does the work: `nsenter` into a process namespace forks, waits and is not the one to signal. */
export function innerProcess(pid: number): number {
  const read = (file: string): string => readFileSync(`/proc/${pid}/${file}`, "utf8").trim();
  return (read("comm") === "nsenter" && Number(read(`task/${pid}/children`))) || pid;
}
