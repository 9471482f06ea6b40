import { closeSync, constants, fstatSync, openSync, renameSync, rmSync, statSync, writeSync } from "node:fs";
import { limits } from "../limits.ts";
import { reasonOf } from "../reason.ts";
import { openOwnFile } from "./plain-file.ts";

/**
 * Appends one line to a log that many processes may write at once, and that takes up twice
 * `mostBytes`: a full one becomes `<file>.1`.
 * @returns what went wrong, for stderr
 */
export function appendToLog(file: string, line: string, mostBytes: number = limits.logFileBytes): string | undefined {
  try {
    if (append(file, line) >= mostBytes) rotate(file, mostBytes);
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

/** One process at a time: of two that saw the file full, the second would throw away what the first kept. */
function rotate(file: string, mostBytes: number): void {
  const lock = `${file}.lock`;
  let fd: number;
  try {
    fd = openSync(lock, "wx", 0o600);
  } catch {
    // Somebody is at it, or was killed over it: then the next call finds no lock.
    const age = Date.now() - (statSync(lock, { throwIfNoEntry: false })?.mtimeMs ?? Date.now());
    if (age > limits.logLockMs) rmSync(lock, { force: true });
    return;
  }
  try {
    if (statSync(file).size >= mostBytes) renameSync(file, `${file}.1`);
  } finally {
    closeSync(fd);
    rmSync(lock, { force: true });
  }
}
