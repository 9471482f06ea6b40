import { DatabaseSync } from "node:sqlite";
import { CniCode, CniError } from "../../shared/errors.ts";
import { limits } from "../../shared/limits.ts";
import { isWindows } from "../../shared/os/platform.ts";
import { reasonOf } from "../../shared/reason.ts";
import { requireOwnPlace } from "./own-place.ts";
import { applicationId, migrations } from "./schema.ts";
import { sqliteCode, storeError } from "./sqlite-errors.ts";

const cannotOpen = 14;
const busy = 5;
/**
 * SQLite waits longer and longer for a lock, up to 100 ms a time. In a crowd of plugins the lock is free for most
 * of that, so once the database stands its waiting is cut short and begun again, until `limits.storeLockMs` are over.
 */
const sqliteWaitMs = 8;
const longestPauseMs = 4;

/**
 * Opens the database; `undefined` where there is no file.
 * @throws {CniError} naming the path: refused by the system, damaged, another program's, or of a newer schema
 */
export async function openDatabase(path: string): Promise<DatabaseSync | undefined> {
  // Before SQLite sees it: an empty file makes it throw the log away, and with it every lease.
  if (Bun.file(path).size === 0) (await strangeFiles()).refuseEmptied(path);
  // `mode=rw` does not create: one system call answers what a look at the directory would have to ask first.
  const attempt = (): DatabaseSync => new DatabaseSync(uriOf(path), { timeout: limits.storeLockMs });
  try {
    return await prepared(attempt(), path);
  } catch (caught) {
    if (sqliteCode(caught) !== cannotOpen) throw storeError(caught, path);
    if (await isMissing(path)) return undefined;
  }
  try {
    // What can be seen now may have been made since.
    return await prepared(attempt(), path);
  } catch (caught) {
    throw storeError(caught, path);
  }
}

/**
 * As `openDatabase`, for who goes by what stands in it.
 * @throws {CniError} as `openDatabase` and `requireOwnPlace`
 */
export async function openOwnDatabase(path: string, directory: string): Promise<DatabaseSync | undefined> {
  requireOwnPlace(path, directory);
  return openDatabase(path);
}

/** SQLite has one code for "is not there" and for "may not", and a DEL must not take the second for the first. */
async function isMissing(path: string): Promise<boolean> {
  try {
    await Bun.file(path).stat();
    return false;
  } catch (caught) {
    const code = (caught as { code?: unknown }).code;
    return code === "ENOENT" || code === "ENOTDIR";
  }
}

/**
 * Opens the database, and makes it and its directory when missing: both for this user alone.
 * @throws {CniError} as `openOwnDatabase`
 */
export async function openOrCreateDatabase(path: string, directory: string): Promise<DatabaseSync> {
  const existing = await openOwnDatabase(path, directory);
  if (existing !== undefined) return existing;
  await makeDirectory(directory, path);
  (await strangeFiles()).refuseLink(path);
  // SQLite gives its log and index the mode of the database.
  const umask = process.umask(0o077);
  try {
    return await prepared(new DatabaseSync(path, { timeout: limits.storeLockMs }), path);
  } catch (caught) {
    throw storeError(caught, path);
  } finally {
    process.umask(umask);
  }
}

async function makeDirectory(directory: string, path: string): Promise<void> {
  // Once in the life of a node, so the other calls need not pay for these.
  const { mkdirSync } = await import("node:fs");
  try {
    if (isWindows) (await import("../../shared/os/directory.windows.ts")).makeAdministratorsDirectory(directory);
    else mkdirSync(directory, { recursive: true, mode: 0o700 });
  } catch (cause) {
    const is = reasonOf(cause);
    throw new CniError(
      CniCode.ipamFailure,
      `Cannot create the lease database "${path}": its directory cannot be made (${is}), wanted a place to write to`,
      { cause },
    );
  }
}

async function prepared(db: DatabaseSync, path: string): Promise<DatabaseSync> {
  await requireNoLink(db, path);
  try {
    db.exec("PRAGMA synchronous = NORMAL");
    const version = versionOf(db);
    if (logLength(db) === 0 && Bun.file(`${path}-wal`).size > 0) (await strangeFiles()).refuseBrokenLog(path);
    if (version !== migrations.length) upgrade(db, path);
    db.exec(`PRAGMA busy_timeout = ${sqliteWaitMs}`);
    return db;
  } catch (caught) {
    // What is wrong with it must still be there for whoever sets it aside: SQLite would throw a broken log away.
    closeDatabase(db, path);
    throw caught;
  }
}

/** SQLite follows links, and root must not write where somebody else points to: nothing has been read by then. */
async function requireNoLink(db: DatabaseSync, path: string): Promise<void> {
  if (db.location() === path) return;
  try {
    (await strangeFiles()).refuseLink(path);
  } catch (caught) {
    db.close();
    throw caught;
  }
}

function upgrade(db: DatabaseSync, path: string): void {
  requireOurs(db, path);
  retryBusy(() => db.exec("PRAGMA page_size = 2048; PRAGMA journal_mode = WAL"));
  db.exec("BEGIN IMMEDIATE");
  try {
    // Another process may have been faster, so only now does the version count.
    for (const step of migrations.slice(versionOf(db))) db.exec(step);
    db.exec(`PRAGMA application_id = ${applicationId}; PRAGMA user_version = ${migrations.length}; COMMIT`);
  } catch (caught) {
    // SQLite may have done so by itself, and what was caught is what matters.
    if (db.isTransaction) db.exec("ROLLBACK");
    throw caught;
  }
}

function requireOurs(db: DatabaseSync, path: string): void {
  const cannot = `Cannot use the lease database "${path}"`;
  // One snapshot for all three: meanwhile another process may be making the database.
  db.exec("BEGIN");
  const version = versionOf(db);
  const { application_id: application } = db.prepare("PRAGMA application_id").get() as { application_id: number };
  const { tables } = db.prepare("SELECT count(*) AS tables FROM sqlite_schema").get() as { tables: number };
  db.exec("COMMIT");
  if (version > migrations.length) {
    throw new CniError(
      CniCode.ipamFailure,
      `${cannot}: its schema version is ${version}, wanted ${migrations.length} or lower`,
      { details: "A newer Pipette has written it; run that one, or a later one" },
    );
  }
  if (tables > 0 && application !== applicationId) {
    throw new CniError(CniCode.ipamFailure, `${cannot}: another program's tables are in it, wanted Pipette's`);
  }
}

/**
 * Closes the database, and leaves a log that is short beside it: the next process reads it at its start.
 *
 * SQLite's own way is that the last connection moves the log into the database at its end: four waits for
 * the disk for each plugin process. It does so under an exclusive lock, which it does not get while
 * another connection is open; and a connection that only reads does not get it either, so that one
 * goes last. A log that is long goes SQLite's way. (Its moving of the log after a commit would not do:
 * that the log may start over is noted in shared memory, which ends with the last process.)
 *
 * A connection that is left to the end of its process Bun closes in the worst way: it has the whole log moved, under the
 * writer's lock, whoever else has the database open. In a crowd each process then keeps all others waiting for the disk.
 */
export function closeDatabase(db: DatabaseSync, path: string): void {
  let last: DatabaseSync | undefined;
  try {
    if (logLength(db) < limits.walPages) {
      last = new DatabaseSync(path, { readOnly: true });
      // Only a connection that has read holds its place.
      last.exec("PRAGMA user_version");
    }
  } catch {
    // Then the log is moved now, which costs time and nothing else.
  }
  db.close();
  last?.close();
}

/** With `node:fs`, so only where something looks strange. */
const strangeFiles = () => import("./strange-files.ts");

/** Pages in the log that count; -1 where there is no log. */
function logLength(db: DatabaseSync): number {
  return (db.prepare("PRAGMA wal_checkpoint(NOOP)").get() as { log: number }).log;
}

function versionOf(db: DatabaseSync): number {
  return (db.prepare("PRAGMA user_version").get() as { user_version: number }).user_version;
}

/** Tries again while another process holds a lock; the pauses differ, so that a crowd does not come back as one. */
export function retryBusy<T>(attempt: () => T): T {
  const deadline = performance.now() + limits.storeLockMs;
  for (;;) {
    try {
      return attempt();
    } catch (caught) {
      if (sqliteCode(caught) !== busy || performance.now() > deadline) throw caught;
      Bun.sleepSync(Math.random() * longestPauseMs);
    }
  }
}

/** sqlite.org/uri.html. */
function uriOf(path: string): string {
  const slashes = isWindows ? `/${path.replaceAll("\\", "/")}` : path;
  return `file:${encodeURI(slashes).replaceAll("?", "%3f").replaceAll("#", "%23")}?mode=rw`;
}
