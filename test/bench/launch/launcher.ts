import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { execa } from "execa";

/** A program to be started, as a runtime starts a plugin: variables and standard input, until it has ended. */
export interface Launch {
  /** Its path, and arguments. */
  readonly program: readonly [string, ...string[]];
  readonly env: Readonly<Record<string, string>>;
  readonly stdin: string;
  /** Namespaces below /run/netns: one process for each, all at once. Absent: one, with the environment as it is. */
  readonly namespaces?: readonly string[];
}

export interface Launched {
  /** From exec to exit. */
  readonly ms: number;
  /** Peak resident memory. */
  readonly peakKb: number;
  readonly status: number;
  readonly stdout: string;
}

export interface LaunchedAll {
  /** From the first start to the last end. */
  readonly ms: number;
  readonly each: readonly Launched[];
}

/** Starts programs by a small program of its own, which measures them. */
export class Launcher {
  readonly #directory: string;
  readonly #program: string;

  private constructor(directory: string) {
    this.#directory = directory;
    this.#program = join(directory, "launch");
  }

  /** @throws where musl-gcc (Debian package musl-tools) refuses or is missing */
  static async compile(scratch: string): Promise<Launcher> {
    const launcher = new Launcher(join(scratch, "launch"));
    mkdirSync(launcher.#directory, { recursive: true });
    const source = join(import.meta.dirname, "launch.c");
    await execa("/usr/bin/musl-gcc", [
      "-O2",
      "-static",
      "-Wall",
      "-Wextra",
      "-Werror",
      "-o",
      launcher.#program,
      source,
    ]);
    return launcher;
  }

  /** @throws where the launcher fails; what its programs end with is in the answer */
  run({ program, env, stdin, namespaces = ["-"] }: Launch): LaunchedAll {
    const [input, output] = [join(this.#directory, "in"), join(this.#directory, "out")];
    writeFileSync(input, stdin);
    const cmd = [this.#program, input, output, ...namespaces, "--", ...program];
    const { stdout, stderr, exitCode } = Bun.spawnSync({ cmd, env, stdout: "pipe", stderr: "pipe" });
    if (exitCode !== 0) throw new Error(`Cannot launch "${program[0]}": ${stderr.toString()}`);
    const [all = "", ...lines] = stdout.toString().trim().split("\n");
    const each = lines.map((line, i) => {
      const [us = 0, peakKb = 0, status = 0] = line.split(" ").map(Number);
      return { ms: us / 1000, peakKb, status, stdout: readFileSync(`${output}${i}`, "utf8") };
    });
    return { ms: Number(all) / 1000, each };
  }
}
