import { DatabaseSync } from "node:sqlite";
import { CniCode, CniError } from "../../shared/errors.ts";
import { isWindows } from "../../shared/os/platform.ts";
import { reasonOf } from "../../shared/reason.ts";
import { requireOwnPlace } from "./own-place.ts";
import { applicationId, migrations } from "./schema.ts";
import { sqliteCode, storeError, storeLockMs } from "./sqlite-errors.ts";

/**
 * Pages in the write-ahead log at which a checkpoint is made: each process reads the whole log at its start, and each
 * checkpoint waits for the disk.
 */
const walPages = 64;

/** Pages at which `checkpoint` makes one: an ADD and a DEL write some ten. */
const checkpointPages = 256;
/** Pages at which SQLite does so by itself where checkpoints are deferred: 8 MB. */
const deferredPages = 4_096;

const cannotOpen = 14;
const busy = 5;
/**
 * SQLite doubles its waits for a lock, up to 100 ms each, during most of which the lock is free when many plugins
 * compete. So its waiting is cut short and restarted until `storeLockMs` are over.
 */
const sqliteWaitMs = 8;
const longestPauseMs = 4;

/**
 * Opens the database; `undefined` where there is no file.
 * @throws {CniError} naming the path: refused by the system, damaged, another program's, or of a newer schema
 */
export async function openDatabase(path: string): Promise<DatabaseSync | undefined> {
  if (Bun.file(path).size === 0) {
    // Checked before SQLite opens it: for an empty file it would discard the log, and with it every lease.
    (await strangeFiles()).refuseEmptied(path);
    // Where a first open fails SQLite opens for reading alone, and may find what another process has created meanwhile.
    if (await isMissing(path)) return undefined;
  }
  try {
    // `mode=rw` does not create the file.
    return await prepared(new DatabaseSync(uriOf(path), { timeout: storeLockMs }), path);
  } catch (caught) {
    if (sqliteCode(caught) === cannotOpen && (await isMissing(path))) return undefined;
    throw storeError(caught, path);
  }
}

/**
 * As `openDatabase`, and checks who may write it, for callers that act on its content.
 * @throws {CniError} as `openDatabase` and `requireOwnPlace`
 */
export async function openOwnDatabase(path: string, directory: string): Promise<DatabaseSync | undefined> {
  requireOwnPlace(path, directory);
  return openDatabase(path);
}

/**
 * SQLite has one code for a missing file and for a refused one, and a DEL must not mistake the second for the first.
 */
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
 * Opens the database, and creates it and its directory if missing, accessible to this user alone.
 * @throws {CniError} as `openOwnDatabase`
 */
export async function openOrCreateDatabase(path: string, directory: string): Promise<DatabaseSync> {
  const existing = await openOwnDatabase(path, directory);
  if (existing !== undefined) return existing;
  await makeDirectory(directory, path);
  (await strangeFiles()).refuseLink(path);
  // SQLite creates its log and index with the mode of the database.
  const umask = process.umask(0o077);
  try {
    return await prepared(new DatabaseSync(path, { timeout: storeLockMs }), path);
  } catch (caught) {
    throw storeError(caught, path);
  } finally {
    process.umask(umask);
  }
}

async function makeDirectory(directory: string, path: string): Promise<void> {
  // Needed once in a node's life, so other calls do not load it.
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
    if (logOf(db).log === 0 && Bun.file(`${path}-wal`).size > 0) (await strangeFiles()).refuseBrokenLog(path);
    if (version !== migrations.length) upgrade(db, path);
    db.exec(`PRAGMA busy_timeout = ${sqliteWaitMs}`);
    return db;
  } catch (caught) {
    // The damaged files must stay as they are for the rebuild: SQLite would discard a broken log when it closes.
    closeDatabase(db, path);
    throw caught;
  }
}

/** SQLite follows links, and root must not write where another user's link points. Checked before anything is read. */
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
  db.exec(`PRAGMA busy_timeout = ${sqliteWaitMs}`);
  retryBusy(() => db.exec("PRAGMA page_size = 2048; PRAGMA journal_mode = WAL"));
  // Whoever has migrated meanwhile may keep the lock busy with its own work.
  if (versionOf(db) === migrations.length) return;
  retryBusy(() => db.exec("BEGIN IMMEDIATE"));
  try {
    // Another process may have migrated meanwhile, so the version is read inside the transaction.
    for (const step of migrations.slice(versionOf(db))) db.exec(step);
    db.exec(`PRAGMA application_id = ${applicationId}; PRAGMA user_version = ${migrations.length}; COMMIT`);
  } catch (caught) {
    // SQLite may have rolled back already, and its error must not hide the first one.
    if (db.isTransaction) db.exec("ROLLBACK");
    throw caught;
  }
}

function requireOurs(db: DatabaseSync, path: string): void {
  const cannot = `Cannot use the lease database "${path}"`;
  // One snapshot for all three reads, because another process may be creating the database.
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
 * Closes the database and leaves a short log beside it, which the next process reads at its start.
 *
 * By default the last connection makes a checkpoint when it closes, which costs each plugin process four waits for the
 * disk. SQLite does that under an exclusive lock, which it does not get while another connection is open, nor on a
 * connection that only reads. So a reading connection is closed last. With a long log SQLite's default is used.
 * (Checkpoints after a commit would not do: that the log may restart is kept in shared memory, which ends with the last
 * process.)
 *
 * A connection that is still open when its process ends is closed by Bun with a full checkpoint under the writer's
 * lock. When many plugins run, each of them would keep all others waiting for the disk.
 */
export function closeDatabase(db: DatabaseSync, path: string): void {
  let last: DatabaseSync | undefined;
  try {
    if (logOf(db).log < walPages) {
      last = new DatabaseSync(path, { readOnly: true });
      // Only a connection that has read something holds a lock.
      last.exec("PRAGMA user_version");
    }
  } catch {
    // On failure SQLite makes the checkpoint now, which only costs time.
  }
  db.close();
  last?.close();
}

/**
 * From now on `checkpoint` writes the log back. By default SQLite does so in the transaction that makes the log long, about
 * every hundredth pod's, which then waits for the disk twice.
 */
export function deferCheckpoints(db: DatabaseSync): void {
  db.exec(`PRAGMA wal_autocheckpoint = ${deferredPages}`);
}

/**
 * Writes a long log back to the database, which waits for the disk; other processes read and write meanwhile.
 * @returns whether it was long
 */
export function checkpoint(db: DatabaseSync): boolean {
  const { log, checkpointed } = logOf(db);
  if (log - checkpointed < checkpointPages) return false;
  db.exec("PRAGMA wal_checkpoint(PASSIVE)");
  return true;
}

/** Imports `node:fs`, so it is loaded only when a file looks wrong. */
const strangeFiles = () => import("./strange-files.ts");

/** Pages of the log that are in use, and those of them that are in the database as well; -1 if there is no log. */
function logOf(db: DatabaseSync): { readonly log: number; readonly checkpointed: number } {
  return db.prepare("PRAGMA wal_checkpoint(NOOP)").get() as { log: number; checkpointed: number };
}

function versionOf(db: DatabaseSync): number {
  return (db.prepare("PRAGMA user_version").get() as { user_version: number }).user_version;
}

/**
 * Tries again while another process holds a lock; the pauses are random, so that many waiting processes do not retry
 * together.
 */
export function retryBusy<T>(attempt: () => T): T {
  try {
    return attempt();
  } catch (caught) {
    return retryFailed(caught, attempt);
  }
}

/** The same for an attempt that has failed already. @throws what failed, unless that is such a lock */
export function retryFailed<T>(failed: unknown, attempt: () => T): T {
  const deadline = performance.now() + storeLockMs;
  for (let reason = failed; ; ) {
    if (sqliteCode(reason) !== busy || performance.now() > deadline) throw reason;
    Bun.sleepSync(Math.random() * longestPauseMs);
    try {
      return attempt();
    } catch (caught) {
      reason = caught;
    }
  }
}

/** sqlite.org/uri.html. */
function uriOf(path: string): string {
  const slashes = isWindows ? `/${path.replaceAll("\\", "/")}` : path;
  return `file:${encodeURI(slashes).replaceAll("?", "%3f").replaceAll("#", "%23")}?mode=rw`;
}
