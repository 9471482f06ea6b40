import { writeFileSync } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { execa } from "execa";

export const dayMs = 24 * 60 * 60 * 1000;

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

  private constructor(file: string, library: string) {
    this.#file = file;
    this.env = { LD_PRELOAD: library, PIPETTE_TEST_CLOCK: file };
  }

  /** @param directory which those processes see under the same path */
  static async make(directory: string): Promise<SteppedClock> {
    const library = join(directory, "stepped-clock.so");
    const source = join(import.meta.dirname, "stepped-clock.c");
    await execa("gcc", ["-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o", library, source]);
    const file = join(directory, "clock");
    writeFileSync(file, new BigInt64Array(1));
    return new SteppedClock(file, library);
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
