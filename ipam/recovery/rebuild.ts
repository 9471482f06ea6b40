import {
  closeSync,
  copyFileSync,
  existsSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { CniCode, CniError } from "../../shared/errors.ts";
import { reasonOf } from "../../shared/reason.ts";
import { rebuildDirectoryOf } from "../data-directory.ts";
import { ExclusiveLock } from "./exclusive-lock.ts";
import { copyDatabase, damageIn, makeReplacement } from "./replacement.ts";
import { removeWork, syncFile, syncNames } from "./work-directory.ts";

/** Replaces SQLite's magic text, which has the same length, so that no process can open the file meanwhile. */
const underway = new TextEncoder().encode("Pipette rebuilds");
const replacementName = "ready.db";
const chunkBytes = 1024 * 1024;
/**
 * The beginning of the file. It lies in one page of the kernel, so a killed process has written it as a whole or not at
 * all.
 */
const firstBytes = 2048;

/**
 * Sets a damaged database aside, under a name with the time in it, and replaces it by what can still be read. Any
 * number of processes may try this at the same time: one does it, the others find it done. An intact database stays as
 * it is.
 *
 * The file stays and gets new content, since a process that has just opened it would otherwise use the old file with
 * the new log. Until its first bytes are overwritten nothing has changed; after that, if the process is killed, the
 * next one continues where it stopped.
 * @param log gets in sentences what was done
 * @throws {CniError} code 11 where others keep the database open, 101 where the file system refuses
 */
export async function rebuildDatabase(path: string, log: (line: string) => void): Promise<void> {
  using lock = await ExclusiveLock.take(path);
  if (!isStill(path, lock.fd)) return;
  const work = rebuildDirectoryOf(path);
  try {
    if (!isUnderway(lock.fd, work)) {
      if (!(await prepare(path, work, log))) return;
      writeSync(lock.fd, underway, 0, underway.length, 0);
      fsyncSync(lock.fd);
    }
    finish(path, lock.fd, work);
  } catch (caught) {
    if (caught instanceof CniError) throw caught;
    const is = reasonOf(caught);
    throw new CniError(
      CniCode.ipamFailure,
      `Cannot rebuild the lease database "${path}": ${is}, wanted a file system that can be written and has room for it twice`,
      { cause: caught },
    );
  }
}

/** The file may have been removed while this process waited. */
function isStill(path: string, fd: number): boolean {
  const [own, now] = [fstatSync(fd), statSync(path, { throwIfNoEntry: false })];
  return own.ino === now?.ino && own.dev === now.dev;
}

function isUnderway(fd: number, work: string): boolean {
  const first = new Uint8Array(underway.length);
  readSync(fd, first, 0, first.length, 0);
  return first.every((byte, i) => byte === underway[i]) && existsSync(join(work, replacementName));
}

/** Prepares all files that are put in place later. @returns `false` if there is no damage */
async function prepare(path: string, work: string, log: (line: string) => void): Promise<boolean> {
  removeWork(work);
  mkdirSync(work, { mode: 0o700 });
  let ready = false;
  try {
    const [looked, next] = [join(work, "looked-at.db"), join(work, "next.db")];
    copyDatabase(path, looked);
    const damage = damageIn(looked);
    if (damage === undefined) return false;
    const aside = `${basename(path)}.damaged-${new Date().toISOString().replaceAll(/[-:]/g, "")}`;
    for (const suffix of ["", "-wal", "-shm"])
      if (existsSync(path + suffix)) copyFileSync(path + suffix, join(work, aside + suffix));
    const { leases, complete } = await makeReplacement(next, work, looked, aside);
    syncFile(next);
    renameSync(next, join(work, replacementName));
    syncNames(work);
    log(`The lease database "${path}" is damaged (${damage}): it is set aside as "${join(dirname(path), aside)}"`);
    const rest = complete ? "no other address was in use" : "others may have been lost";
    log(`The lease database "${path}" is made anew with the ${leases} leases that could be read; ${rest}`);
    ready = true;
    return true;
  } finally {
    if (!ready) removeWork(work);
  }
}

/** Each step can be repeated. */
function finish(path: string, fd: number, work: string): void {
  for (const suffix of ["-wal", "-shm"]) rmSync(path + suffix, { force: true });
  const directory = dirname(path);
  for (const name of readdirSync(work))
    if (name.startsWith(`${basename(path)}.`)) renameSync(join(work, name), join(directory, name));
  copyInto(fd, join(work, replacementName));
  removeWork(work);
  syncNames(directory);
}

/** The beginning is written last: until then the file is no database. */
function copyInto(fd: number, source: string): void {
  const from = openSync(source, "r");
  try {
    const { size } = fstatSync(from);
    ftruncateSync(fd, size);
    const chunk = new Uint8Array(chunkBytes);
    const copy = (at: number, most: number): void => {
      const length = readSync(from, chunk, 0, Math.min(most, chunkBytes), at);
      writeSync(fd, chunk, 0, length, at);
    };
    for (let at = firstBytes; at < size; at += chunkBytes) copy(at, chunkBytes);
    fsyncSync(fd);
    copy(0, firstBytes);
    fsyncSync(fd);
  } finally {
    closeSync(from);
  }
}
