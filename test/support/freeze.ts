import type { ChildProcess } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";

/**
 * Stops a process from running and waits until each of its threads stands: on a busy machine one may answer another
 * call after the signal was sent.
 */
export async function freeze({ pid }: Pick<ChildProcess, "pid">): Promise<void> {
  if (pid === undefined) throw new Error("Cannot freeze a process that was never started");
  process.kill(pid, "SIGSTOP");
  for (let look = 0; look < 1000; look++) {
    const threads = readdirSync(`/proc/${pid}/task`);
    if (threads.every((thread) => isStopped(`/proc/${pid}/task/${thread}/stat`))) return;
    await Bun.sleep(2);
  }
  throw new Error(`Cannot freeze process ${pid}: it still runs, wanted all of its threads stopped`);
}

/** The state comes behind the program's name, which may have parentheses of its own (proc_pid_stat(5)). */
function isStopped(path: string): boolean {
  const stat = readFileSync(path, "utf8");
  return stat.at(stat.lastIndexOf(")") + 2) === "T";
}
