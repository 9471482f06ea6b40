import { commandMs, runProgram } from "../../platform/run-program.ts";

/** Why `nft` has not taken a script. */
export interface Refusal {
  readonly reason: string;
  /** There is no such program. */
  readonly isAbsent: boolean;
}

/** Has `nft` carry out a script, all of it or nothing: one transaction. @returns why it has not */
export async function loadScript(lines: readonly string[]): Promise<Refusal | undefined> {
  const input = `${lines.join("\n")}\n`;
  const { failure, stderr, isAbsent } = await runProgram("nft", ["-f", "-"], { input, deadlineMs: commandMs });
  if (failure === "") return undefined;
  return { reason: [failure, stderr.trim()].filter((text) => text !== "").join(": "), isAbsent };
}
