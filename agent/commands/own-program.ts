import { runProgram } from "../platform/run-program.ts";

interface Ran {
  readonly stdout: string;
  readonly stderr: string;
  readonly failure: string;
  readonly status?: number;
}

/** Sources are run by Bun, and an executable has its first file inside of itself. */
const first = Bun.main.includes("$bunfs") || Bun.main.includes("~BUN") ? [] : [Bun.main];

/** Starts this program once more, with other arguments. */
export const ownProgram = {
  run: (
    args: readonly string[],
    options: { readonly deadlineMs: number; readonly input: string; readonly maxBytes: number },
  ): Promise<Ran> => runProgram(process.execPath, [...first, ...args], options),
};
