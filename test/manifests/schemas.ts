import { existsSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { execa } from "execa";
import { scratchDir } from "../support/scratch-dir.ts";

/** Where build/setup.sh puts it: the tool, and the schemas of Kubernetes 1.25 to 1.37 within. */
const validator = join(
  process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"),
  "pipette/schemas-1.37.0/bin/kubernetes-validate",
);

export const whyNoSchemas = (): string | undefined =>
  existsSync(validator)
    ? undefined
    : `"${validator}" is missing, which "sh build/setup.sh test" installs from PyPI where that can be reached`;

/** What of these objects that version of Kubernetes would not take, unknown keys included; an unknown kind is one. */
export async function schemaProblems(objects: string, version: string): Promise<readonly string[]> {
  using scratch = scratchDir();
  const file = join(scratch.path, "objects.yaml");
  writeFileSync(file, objects);
  const { all, exitCode } = await execa(validator, ["--strict", "-k", version, file], { reject: false, all: true });
  const lines = all.split("\n").filter((line) => line !== "" && !/^INFO .* passed for resource /.test(line));
  return exitCode === 0 || lines.length > 0 ? lines : [`it ended with status ${exitCode}`];
}
