import { writeFileSync } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { execa } from "execa";

export const dayMs = 24 * 60 * 60 * 1000;

/** Where each of the processes has the clock's page. */
const page = "0x7e0000000000";

/** @returns the library's path */
async function compile(directory: string, name: string, options: readonly string[] = []): Promise<string> {
  const [library, source] = [join(directory, `${name}.so`), join(import.meta.dirname, `${name}.c`)];
  const usual = ["-shared", "-fPIC", "-O2", "-Wall", "-Werror", `-DCLOCK_PAGE=${page}`];
  await execa("gcc", [...usual, ...options, "-o", library, source]);
  return library;
}

/**
 * The wall clock of chosen processes, which can be set while they run; the machine's own is never touched. What is
 * monotonic goes on as it does when somebody sets a clock.
 */
export class SteppedClock {
  readonly #file: string;
  /** For the processes that are to live by this clock. */
  readonly env: Readonly<Record<string, string>>;
  #aheadMs = 0;
  #wasSetBack = false;

  private constructor(file: string, library: string, vdso: string) {
    this.#file = file;
    this.env = { LD_PRELOAD: library, PIPETTE_TEST_CLOCK: file, PIPETTE_TEST_VDSO: vdso };
  }

  /** @param directory which those processes see under the same path */
  static async make(directory: string): Promise<SteppedClock> {
    const library = await compile(directory, "stepped-clock");
    const version = join(directory, "stepped-vdso.map");
    writeFileSync(version, "LINUX_2.6 { global: __vdso_clock_gettime; local: *; };");
    const own = ["-nostdlib", "-fno-stack-protector", "-Wl,--hash-style=both", `-Wl,--version-script=${version}`];
    const vdso = await compile(directory, "stepped-vdso", own);
    const file = join(directory, "clock");
    writeFileSync(file, new BigInt64Array(1));
    return new SteppedClock(file, library, vdso);
  }

  /** Whether the doctor says so because this clock was set back, which it is right to do. */
  explains(disagreement: string): boolean {
    return this.#wasSetBack && disagreement.startsWith("time-ahead:");
  }

  /** Sets the clock, for all of them at once, so much further ahead; back where it is negative. */
  async step(ms: number): Promise<void> {
    this.#aheadMs += ms;
    this.#wasSetBack ||= ms < 0;
    await using file = await open(this.#file, "r+");
    await file.write(new Uint8Array(new BigInt64Array([BigInt(Math.round(this.#aheadMs)) * 1_000_000n]).buffer));
  }
}
