import { join } from "node:path";

const root = join(import.meta.dirname, "../..");

/** Whether the executables are those of this tree: a whole run compiles them before its first test file, and says so. */
export const isCompiled = process.env["PIPETTE_COMPILED"] === "1";

/**
 * Starts `pipette`; its arguments follow. In a whole run that is the executable, which starts with a third of the work;
 * a file by itself takes the sources, for which nobody has to compile.
 */
export const ownProgram: readonly string[] = isCompiled
  ? [join(root, "dist/linux-x64/pipette")]
  : [process.execPath, join(root, "main.ts")];
