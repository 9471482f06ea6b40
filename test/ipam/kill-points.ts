import { readFileSync, rmSync } from "node:fs";
import { type CniCall, type CniEnded, runPlugin } from "../support/cni-call.ts";

/** A moment of a process: its main thread is about to make the `nth` call of `name`, or of any where that is "all". */
export interface KillPoint {
  readonly name: string;
  readonly nth: number;
}

/** The main thread alone: SQLite works there and nowhere else, and what is counted there comes out the same each time. */
function strace(call: CniCall, options: readonly string[]): Promise<CniEnded> {
  return runPlugin({ ...call, prefix: ["strace", "-qq", ...options] });
}

/** Every call of the main thread, in order, in a run to the end. */
export async function callsOf(call: CniCall): Promise<readonly string[]> {
  const trace = `/tmp/pt-kill-${process.pid}`;
  try {
    await strace(call, ["-o", trace]);
    const lines = readFileSync(trace, "utf8").split("\n");
    return lines.flatMap((line) => /^(\w+)\(/.exec(line)?.[1] ?? []).slice(1);
  } finally {
    rmSync(trace, { force: true });
  }
}

/** Ends the process with SIGKILL in place of that call; `false` where it came to its own end before. */
export async function killAt(call: CniCall, { name, nth }: KillPoint): Promise<boolean> {
  const inject = ["-e", `trace=${name}`, "-e", `inject=${name}:signal=KILL:when=${nth}`, "-o", "/dev/null"];
  return (await strace(call, inject)).status === null;
}
