import { isWindows } from "./platform.ts";

/** Who may do what this user may not: nearly all that Pipette keeps and serves is for nobody else. */
export const whoMay = isWindows ? "an administrator" : "root";

/** The middle and the end of a message about a connection that failed with a code of the system. */
export const connectFailure = (code: string, wanted: string): string =>
  code === "EACCES"
    ? `this user may not connect (${code}), wanted ${whoMay}`
    : `connecting fails with ${code}, wanted ${wanted}`;

/** On Windows that is not asked. */
export const isUnprivileged = (): boolean => !isWindows && process.geteuid?.() !== 0;

/** Whether this user's rights are what keeps it from a file or socket; on Windows that is not asked. */
export function isForbidden(path: string): boolean {
  if (!isUnprivileged()) return false;
  const { accessSync, constants } = process.getBuiltinModule("node:fs");
  try {
    accessSync(path, constants.R_OK | constants.W_OK);
    return false;
  } catch (caught) {
    return isDenial(caught);
  }
}

/** Whether the system has refused something to this user, by an error or by what caused it. */
export function isDenial(caught: unknown): boolean {
  for (let error = caught; error instanceof Error; error = error.cause)
    if ("code" in error && (error.code === "EACCES" || error.code === "EPERM")) return true;
  return false;
}
