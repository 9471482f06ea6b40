import { execFile } from "node:child_process";
import { mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";

/** Compiles one of our programs for Windows. @param source file name in `test/windows/` @param output Unix path */
export async function compileForWindows(
  source: string,
  output: string,
  libraries: readonly string[] = [],
): Promise<void> {
  mkdirSync(dirname(output), { recursive: true });
  const sources = [join(import.meta.dirname, "..", source), ...libraries];
  await promisify(execFile)("x86_64-w64-mingw32-gcc", ["-Wall", "-Werror", "-o", output, ...sources]);
}
