import { createHash } from "node:crypto";
import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { bundleOf } from "../../shared/certificates/mod.ts";
import { writeAtomically } from "../../shared/os/atomic-file.ts";

const ourName = /^pipette-[0-9a-f]{16}\.pem$/;

/**
 * Has strongSwan trust these authorities, and no others of ours, once it reads its directory again. It takes the first
 * certificate of each file, so each has its own.
 * @param ca in PEM; empty: none
 * @throws {CniError} code 5
 */
export function trustAuthorities(directory: string, ca: string): void {
  const wanted = new Map(
    bundleOf(ca).map(({ text }) => [
      `pipette-${createHash("sha256").update(text).digest("hex").slice(0, 16)}.pem`,
      text,
    ]),
  );
  for (const [name, text] of wanted) writeAtomically(join(directory, name), text);
  for (const name of entriesOf(directory))
    if (ourName.test(name) && !wanted.has(name)) rmSync(join(directory, name), { force: true });
}

function entriesOf(directory: string): readonly string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}
