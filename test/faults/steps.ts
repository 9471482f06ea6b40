import { readFileSync, rmSync } from "node:fs";
import type { KillPoint } from "../ipam/kill-points.ts";

/**
 * The steps of a process: the system calls of its main thread, which alone changes anything. What happens before any
 * of them and after the one before is the same to everybody else.
 */

/** As many as wanted, in their order. */
export function sampled<T>(all: readonly T[], most: number, random: (bound: number) => number): readonly T[] {
  const chosen = all.map((_, i) => i);
  while (chosen.length > most) chosen.splice(random(chosen.length), 1);
  return chosen.flatMap((i) => all[i] ?? []);
}

/** Each call by its name and its number among those of that name. */
export function pointsOf(names: readonly string[]): readonly KillPoint[] {
  const counts = new Map<string, number>();
  return names.map((name) => {
    const nth = (counts.get(name) ?? 0) + 1;
    counts.set(name, nth);
    return { name, nth };
  });
}

/** The calls in a trace of one thread. */
export const namesIn = (trace: string): readonly string[] =>
  trace.split("\n").flatMap((line) => /^(\w+)\(/.exec(line)?.[1] ?? []);

/** strace's words for: the process gets this signal when it begins that call. */
export const injecting = ({ name, nth }: KillPoint, signal: string): readonly string[] => [
  "-e",
  `trace=${name}`,
  "-e",
  `inject=${name}:signal=${signal}:when=${nth}`,
];

/** strace, on a process that runs already; from the time `watch` answers until it is disposed of. */
export class Watched implements AsyncDisposable {
  readonly #strace: Bun.Subprocess<"ignore", "ignore", "pipe">;
  readonly #file: string;

  private constructor(strace: Bun.Subprocess<"ignore", "ignore", "pipe">, file: string) {
    this.#strace = strace;
    this.#file = file;
  }

  /** @param options of strace */
  static async watch(pid: number, options: readonly string[]): Promise<Watched> {
    const file = `/tmp/pt-steps-${process.pid}`;
    const command = ["strace", "-o", file, ...options, "-p", String(pid)];
    const strace = Bun.spawn(command, { stdin: "ignore", stdout: "ignore", stderr: "pipe" });
    const watched = new Watched(strace, file);
    const reader = strace.stderr.getReader();
    let said = "";
    while (!said.includes("attached")) {
      const { done, value } = await reader.read();
      if (done) throw new Error(`Cannot watch process ${pid}: strace says ${said}, wanted it attached`);
      said += new TextDecoder().decode(value);
    }
    reader.releaseLock();
    return watched;
  }

  /** Every call until now. */
  async names(): Promise<readonly string[]> {
    await this.end();
    return namesIn(readFileSync(this.#file, "utf8"));
  }

  /** The process goes on, or stays as it is where it was stopped. */
  async end(): Promise<void> {
    this.#strace.kill("SIGINT");
    await this.#strace.exited;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end();
    rmSync(this.#file, { force: true });
  }
}
