import { closeSync, existsSync, lstatSync, openSync, readSync, type Stats, statSync } from "node:fs";
import { CniCode, CniError } from "../../shared/errors.ts";
import { damageError } from "./sqlite-errors.ts";

/**
 * What SQLite takes for a new beginning, or does not mind, and a node must not. Loaded where something has looked
 * strange already: a process that finds everything in order never comes here.
 */

/** @throws {CniError} code 101 where the database is a symbolic link: root would write where it leads to */
export function refuseLink(path: string): void {
  if (!lookAt(path, lstatSync)?.isSymbolicLink()) return;
  throw new CniError(
    CniCode.ipamFailure,
    `Cannot use the lease database "${path}": it is a symbolic link, wanted a file`,
    { details: "Name the place that it leads to as dataDir" },
  );
}

/**
 * SQLite makes the database's first page before there is a log: an empty one beside a log was cut off since.
 * @throws {CniError} code 101, damage
 */
export function refuseEmptied(path: string): void {
  // In this order: the other way round somebody may make both in between.
  const hasLog = existsSync(`${path}-wal`);
  if (hasLog && lookAt(path, statSync)?.size === 0) throw damageError(path, "it is empty and its log is not");
}

/** `undefined` where it cannot be seen: then SQLite says why. */
function lookAt(path: string, look: (path: string) => Stats): Stats | undefined {
  try {
    return look(path);
  } catch {
    return undefined;
  }
}

const headerBytes = 32;
/** The last bit tells the byte order of the sums (sqlite.org/fileformat2.html, "The Write-Ahead Log"). */
const magic = 0x377f0682;
/** Another process may be writing it just now. */
const attempts = 5;

/**
 * SQLite passes over a log whose beginning it cannot read, and with it over every lease since the last move.
 * @throws {CniError} code 101, damage
 */
export function refuseBrokenLog(path: string): void {
  for (let attempt = 1; !hasSoundHeader(`${path}-wal`); attempt++) {
    if (attempt === attempts) throw damageError(path, "its log begins with something else");
    Bun.sleepSync(attempt);
  }
}

/** Also of no log, and of one that nothing was written to. */
function hasSoundHeader(log: string): boolean {
  if ((lookAt(log, statSync)?.size ?? 0) === 0) return true;
  const view = new DataView(new ArrayBuffer(headerBytes));
  const fd = openSync(log, "r");
  try {
    if (readSync(fd, view) < headerBytes) return false;
  } finally {
    closeSync(fd);
  }
  const first = view.getUint32(0);
  if ((first & ~1) >>> 0 !== magic) return false;
  const littleEndian = (first & 1) === 0;
  let [a, b] = [0, 0];
  for (let at = 0; at < 24; at += 8) {
    a = (a + view.getUint32(at, littleEndian) + b) >>> 0;
    b = (b + view.getUint32(at + 4, littleEndian) + a) >>> 0;
  }
  return a === view.getUint32(24) && b === view.getUint32(28);
}
