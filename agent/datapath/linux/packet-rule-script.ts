import { CniCode, CniError } from "../../../shared/errors.ts";
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

/** The same, where the script must be taken. @param action for the error @throws {CniError} 102 with what `nft` said */
export async function requireScript(action: string, lines: readonly string[]): Promise<void> {
  const refusal = await loadScript(lines);
  if (refusal !== undefined) throw refused(action, refusal);
}

export const refused = (action: string, { reason }: Refusal): CniError =>
  new CniError(CniCode.interfaceFailure, `Cannot ${action}: ${reason}, wanted nftables`);
