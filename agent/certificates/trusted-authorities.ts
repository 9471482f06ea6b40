import { createHash } from "node:crypto";
import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { bundleOf } from "../../shared/certificates/mod.ts";
import { writeAtomically } from "../../shared/os/atomic-file.ts";
import { commandMs, runProgram } from "../platform/run-program.ts";

const ourName = /^pipette-[0-9a-f]{16}\.pem$/;

/**
 * Has strongSwan trust these authorities, and no others of ours, once it reads its directory again. It takes the first
 * certificate of each file, so each has its own.
 * @param ca in PEM; empty: none
 * @returns whether anything has changed
 * @throws {CniError} code 5
 */
export function trustAuthorities(directory: string, ca: string): boolean {
  const wanted = new Map(
    bundleOf(ca).map(({ text }) => [
      `pipette-${createHash("sha256").update(text).digest("hex").slice(0, 16)}.pem`,
      text,
    ]),
  );
  const written = [...wanted].filter(([name, text]) => writeAtomically(join(directory, name), text));
  const gone = entriesOf(directory).filter((name) => ourName.test(name) && !wanted.has(name));
  for (const name of gone) rmSync(join(directory, name), { force: true });
  return written.length + gone.length > 0;
}

/**
 * Has strongSwan read them again: what the database of Open vSwitch names it never loads. Where strongSwan is the node's
 * and this a container, the node sees to that.
 * @returns why it does not
 */
export async function rereadAuthorities(): Promise<string | undefined> {
  const { failure, stderr, isAbsent } = await runProgram("ipsec", ["rereadcacerts"], { deadlineMs: commandMs });
  if (failure === "" || isAbsent) return undefined;
  const [line = ""] = stderr.trim().split("\n");
  return `strongSwan has not been told whom to trust ("ipsec rereadcacerts": ${failure}${line === "" ? "" : `, ${line}`})`;
}

function entriesOf(directory: string): readonly string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}
