import { closeSync, fsyncSync, linkSync, mkdirSync, openSync, renameSync, unlinkSync, writeFileSync } from "node:fs";
import { open } from "node:fs/promises";
import { dirname } from "node:path";
import { CniCode, CniError } from "../../shared/errors.ts";
import { readSmallFile } from "../../shared/os/plain-file.ts";
import { isWindows } from "../../shared/os/platform.ts";
import { reasonOf } from "../../shared/reason.ts";
import { maxRecordBytes } from "../../shared/schema/mod.ts";

/** CIS Kubernetes Benchmark 1.1.9; every runtime that reads it is root. */
const fileMode = 0o600;

/**
 * Puts `text` at `path` so that a reader sees the old file or the new one, never a part. A file that is the same
 * already stays untouched: runtimes watch the directory and load again what changes.
 * @returns whether anything was written
 * @throws {CniError} code 5 naming the path
 */
export function writeAtomically(path: string, text: string): boolean {
  if (readIfThere(path) === text) return false;
  write(path, text, renameSync);
  return true;
}

/** As `writeAtomically` for what a power cut may take, as it takes what the file is about. @throws {CniError} code 5 */
export function writeUnsynced(path: string, text: string): void {
  write(path, text, renameSync, false);
}

/**
 * Puts `text` at `path` for good, unless something is there: of several that try at once one succeeds.
 * @returns what is there then
 * @throws {CniError} code 5 naming the path
 */
export function writeOnce(path: string, text: string): string {
  const present = readIfThere(path);
  if (present !== undefined) return present;
  write(path, text, (temporary) => {
    try {
      // As a rename, but one that fails where something has come meanwhile.
      linkSync(temporary, path);
    } catch (caught) {
      if (!(caught instanceof Error && "code" in caught && caught.code === "EEXIST")) throw caught;
    }
    unlinkSync(temporary);
  });
  return readSmallFile(path, maxRecordBytes);
}

/**
 * As `writeAtomically` for what is long and can wait: others are served while the disk works.
 * @param isWanted asked at the end; a text that something newer has overtaken is dropped
 */
export async function writeAtomicallySlowly(path: string, text: string, isWanted: () => boolean): Promise<void> {
  // What a killed process leaves of it goes with the next start (`left-behind.ts`).
  const temporary = `${path}.later.${process.pid}.tmp`;
  try {
    {
      unlinkIfThere(temporary);
      await using file = await open(temporary, "wx", fileMode);
      await file.writeFile(text);
      await file.sync();
    }
    if (!isWanted()) unlinkSync(temporary);
    else renameSync(temporary, path);
    if (!isWindows) {
      await using directory = await open(dirname(path));
      await directory.sync();
    }
  } catch (cause) {
    unlinkIfThere(temporary);
    throw cannotWrite(path, cause);
  }
}

/** Writes beside `path` and has `place` put it there in one step. */
function write(path: string, text: string, place: (temporary: string, path: string) => void, isDurable = true): void {
  const directory = dirname(path);
  // Not a name that a runtime would load: they take .conf, .conflist and .json.
  const temporary = `${path}.${process.pid}.tmp`;
  try {
    mkdirSync(directory, { recursive: true, mode: 0o755 });
    const fd = openNew(temporary);
    try {
      writeFileSync(fd, text);
      if (isDurable) fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
    place(temporary, path);
    // Windows opens no directory as a file; NTFS keeps names in its own log.
    if (isDurable && !isWindows) syncDirectory(directory);
  } catch (cause) {
    unlinkIfThere(temporary);
    throw cannotWrite(path, cause);
  }
}

/** Never what somebody has put there: one of an earlier process with this id goes first. */
function openNew(temporary: string): number {
  unlinkIfThere(temporary);
  return openSync(temporary, "wx", fileMode);
}

function cannotWrite(path: string, cause: unknown): CniError {
  const reason = reasonOf(cause);
  return new CniError(CniCode.io, `Cannot write "${path}": ${reason}, wanted a directory that can be written`, {
    cause,
  });
}

/** The name, too, must outlive a power cut. */
function syncDirectory(directory: string): void {
  const fd = openSync(directory, "r");
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

function readIfThere(path: string): string | undefined {
  try {
    return readSmallFile(path, maxRecordBytes);
  } catch {
    return undefined;
  }
}

function unlinkIfThere(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // It was never made, or the directory is gone: nothing is left either way.
  }
}
