import { closeSync, fsyncSync, linkSync, mkdirSync, openSync, renameSync, unlinkSync, writeFileSync } from "node:fs";
import { open } from "node:fs/promises";
import { dirname } from "node:path";
import { CniCode, CniError } from "../errors.ts";
import { reasonOf } from "../reason.ts";
import { maxRecordBytes } from "../schema/mod.ts";
import { readSmallFile } from "./plain-file.ts";
import { isWindows } from "./platform.ts";

/** CIS Kubernetes Benchmark 1.1.9; every runtime that reads it is root. */
const fileMode = 0o600;

/**
 * Writes `text` to `path` so that a reader sees the old file or the new one, never a part. An identical file is not
 * written, because runtimes watch the directory and reload changed files.
 * @returns whether anything was written
 * @throws {CniError} code 5 naming the path
 */
export function writeAtomically(path: string, text: string): boolean {
  if (readIfThere(path) === text) return false;
  write(path, text, renameSync);
  return true;
}

/**
 * As `writeAtomically`, without flushing to the disk, for files about things that a power cut ends too.
 * @throws {CniError} code 5
 */
export function writeUnsynced(path: string, text: string): void {
  write(path, text, renameSync, false);
}

/**
 * Writes `text` to `path` durably unless it exists; of several concurrent writers one succeeds.
 * @returns what is there then
 * @throws {CniError} code 5 naming the path
 */
export function writeOnce(path: string, text: string): string {
  const present = readIfThere(path);
  if (present !== undefined) return present;
  write(path, text, (temporary) => {
    try {
      // Like a rename, but it fails if the file has been created meanwhile.
      linkSync(temporary, path);
    } catch (caught) {
      if (!(caught instanceof Error && "code" in caught && caught.code === "EEXIST")) throw caught;
    }
    unlinkSync(temporary);
  });
  return readSmallFile(path, maxRecordBytes);
}

/**
 * As `writeAtomically` for large files that can wait: it does not block the process while the disk works.
 * @param isWanted called at the end; a text that is outdated by then is dropped
 */
export async function writeAtomicallySlowly(path: string, text: string, isWanted: () => boolean): Promise<void> {
  // The next start removes what a killed process leaves (`left-behind.ts`).
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

/** Creates the file and never opens an existing one; one of an earlier process with this id is removed first. */
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

/** The directory entry has to survive a power cut too. */
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
    // It was never created, or the directory has gone: nothing is left either way.
  }
}
