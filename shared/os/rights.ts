import { isWindows } from "./platform.ts";

/** Names the user that nearly all of Pipette's files and sockets are restricted to, in messages. */
export const whoMay = isWindows ? "an administrator" : "root";

/** The middle and the end of a message about a connection that failed with a system error code. */
export const connectFailure = (code: string, wanted: string): string =>
  code === "EACCES"
    ? `this user may not connect (${code}), wanted ${whoMay}`
    : `connecting fails with ${code}, wanted ${wanted}`;

/** Always `false` on Windows. */
export const isUnprivileged = (): boolean => !isWindows && process.geteuid?.() !== 0;

/** Whether a file or socket is inaccessible because of this user's rights; always `false` on Windows. */
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

/** Whether an error, or its cause, says that the system refused permission. */
export function isDenial(caught: unknown): boolean {
  for (let error = caught; error instanceof Error; error = error.cause)
    if ("code" in error && (error.code === "EACCES" || error.code === "EPERM")) return true;
  return false;
}

/** Owner and mode, which say who may change a file or directory. */
export interface Ownership {
  readonly uid: number;
  readonly mode: number;
}

const writableByOthers = 0o022;

/**
 * What lets others than root and this user change it: `belongs to user 1000`, or `can be written by others (mode 777)`;
 * `undefined` where nothing does. Another user who owns a directory can replace the files that we put into it.
 */
export function letsOthersIn({ uid, mode }: Ownership): string | undefined {
  if (uid !== 0 && uid !== process.geteuid?.()) return `belongs to user ${uid}`;
  return (mode & writableByOthers) === 0 ? undefined : `can be written by others (mode ${(mode & 0o777).toString(8)})`;
}

export const ownershipRule = "only root, and whoever runs this, to be able to change it";
