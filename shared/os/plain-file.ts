import { closeSync, constants, fstatSync, openSync, readSync, type Stats, statSync } from "node:fs";
import { letsOthersIn } from "./rights.ts";

/**
 * Files in places where other users may have put something first: a link that redirects root's writes, a named pipe
 * without a writer, or a file that its owner can read.
 */

/** Windows has none of these flags; there the directory's permissions say who may create files in it. */
const doNotFollow = constants.O_NOFOLLOW ?? 0;
const doNotWait = constants.O_NONBLOCK ?? 0;

/**
 * Opens a file that belongs to this user or to root and has no second hard link. It is checked after it was opened, so
 * that nobody can replace it in between.
 * @param flags such as `O_RDWR | O_CREAT`
 * @throws {Error} saying what is there instead, which stays unchanged
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
 * The text of a file, whoever owns it and through links. Only a regular file is opened: a pipe would block the whole
 * process, and opening a device may have effects.
 * @throws {Error} also where it is no file, or longer than `maxBytes`
 */
export function readSmallFile(path: string, maxBytes: number): string {
  if (!statSync(path).isFile()) throw new Error(notRegular);
  const fd = openSync(path, constants.O_RDONLY | doNotWait);
  try {
    const stat = fstatSync(fd);
    if (!stat.isFile()) throw new Error(notRegular);
    if (stat.size > maxBytes) throw new Error(`it is longer than ${maxBytes} bytes`);
    const bytes = new Uint8Array(stat.size);
    let length = 0;
    for (let got = -1; got !== 0 && length < bytes.length; length += got)
      got = readSync(fd, bytes, length, bytes.length - length, null);
    return new TextDecoder().decode(bytes.subarray(0, length));
  } finally {
    closeSync(fd);
  }
}
