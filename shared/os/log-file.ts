import { closeSync, constants, fstatSync, openSync, renameSync, rmSync, statSync, writeSync } from "node:fs";
import { reasonOf } from "../reason.ts";
import { openOwnFile } from "./plain-file.ts";

/** The size of a plugin's log file; one older file of the same size is kept. */
export const maxLogFileBytes = 5 * 1024 * 1024;

/** Rotating the log takes a millisecond; the holder of a lock older than this was killed. */
export const logLockMs = 10_000;

/**
 * Appends one line to a log that many processes may write at once. It takes up to twice `maxBytes`: a full file becomes
 * `<file>.1`.
 * @returns what went wrong, for stderr
 */
export function appendToLog(file: string, line: string, maxBytes: number = maxLogFileBytes): string | undefined {
  try {
    if (append(file, line) >= maxBytes) rotate(file, maxBytes);
    return undefined;
  } catch (caught) {
    const is = reasonOf(caught);
    return `Cannot write the log "${file}": ${is}, wanted a file that can be appended to`;
  }
}

/** One write in append mode: lines of several processes do not mix. Answers the file's length before it. */
function append(file: string, line: string): number {
  const fd = openOwnFile(file, constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT);
  try {
    const { size } = fstatSync(fd);
    writeSync(fd, `${line}\n`);
    return size;
  } finally {
    closeSync(fd);
  }
}

/**
 * One process at a time: if two rotated one after the other, the second would overwrite the file that the first kept.
 */
function rotate(file: string, maxBytes: number): void {
  const lock = `${file}.lock`;
  let fd: number;
  try {
    fd = openSync(lock, "wx", 0o600);
  } catch {
    // Another process is rotating, or was killed meanwhile; then the stale lock is removed for the next call.
    const age = Date.now() - (statSync(lock, { throwIfNoEntry: false })?.mtimeMs ?? Date.now());
    if (age > logLockMs) rmSync(lock, { force: true });
    return;
  }
  try {
    if (statSync(file).size >= maxBytes) renameSync(file, `${file}.1`);
  } finally {
    closeSync(fd);
    rmSync(lock, { force: true });
  }
}
