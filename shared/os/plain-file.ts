import { closeSync, constants, fstatSync, openSync, readSync, type Stats, statSync } from "node:fs";
import { letsOthersIn } from "./ownership.ts";

/**
 * Files at places where others may have put something before: a link that leads root's writes elsewhere, a pipe that
 * nobody writes to, a file that its owner reads along in.
 */

/** Windows has none of these flags; there the directory's permissions say who may put something into it. */
const doNotFollow = constants.O_NOFOLLOW ?? 0;
const doNotWait = constants.O_NONBLOCK ?? 0;

/**
 * Opens a file of this user's, or of root's, that has no second name. It is judged once it is open, so that nobody can
 * put another one there in between.
 * @param flags such as `O_RDWR | O_CREAT`
 * @throws {Error} saying what stands there, which is as it was
 */
export function openOwnFile(path: string, flags: number, mode = 0o600): number {
  const fd = openSync(path, flags | doNotFollow | doNotWait, mode);
  const problem = notOwn(fstatSync(fd));
  if (problem === undefined) return fd;
  closeSync(fd);
  throw new Error(problem);
}

function notOwn(stat: Stats): string | undefined {
  if (!stat.isFile()) return notRegular;
  // Windows has neither owners nor modes of this kind.
  if (process.geteuid === undefined) return undefined;
  const open = letsOthersIn(stat);
  if (open !== undefined) return `it ${open}`;
  return stat.nlink > 1 ? "it is a file of another name too" : undefined;
}

const notRegular = "it is no regular file";

/**
 * The text of a file, whoever owns it and through links. Nothing but a file is opened: a pipe would hold the whole
 * process, and a device may do something for being opened.
 * @throws {Error} also where it is no file, or longer than `mostBytes`
 */
export function readSmallFile(path: string, mostBytes: number): string {
  if (!statSync(path).isFile()) throw new Error(notRegular);
  const fd = openSync(path, constants.O_RDONLY | doNotWait);
  try {
    const stat = fstatSync(fd);
    if (!stat.isFile()) throw new Error(notRegular);
    if (stat.size > mostBytes) throw new Error(`it is longer than ${mostBytes} bytes`);
    const bytes = new Uint8Array(stat.size);
    let length = 0;
    for (let got = -1; got !== 0 && length < bytes.length; length += got)
      got = readSync(fd, bytes, length, bytes.length - length, null);
    return new TextDecoder().decode(bytes.subarray(0, length));
  } finally {
    closeSync(fd);
  }
}
