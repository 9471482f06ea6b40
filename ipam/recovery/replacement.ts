import { closeSync, copyFileSync, existsSync, openSync, readSync, statSync, truncateSync, writeSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { reasonOf } from "../../shared/reason.ts";
import { generationMark } from "../allocate/marks.ts";
import { maxRememberedAddresses } from "../allocate/sticky.ts";
import { SqliteStore } from "../store/sqlite-store.ts";
import { refuseBrokenLog, refuseEmptied } from "../store/strange-files.ts";
import { declareIncomplete } from "./integrity.ts";
import { type Salvage, salvage } from "./salvage.ts";

export interface Replacement {
  readonly leases: number;
  readonly complete: boolean;
}

/** What is wrong with a database that no other process has open; `undefined` if nothing is. Leaves its log as it is. */
export function damageIn(path: string): string | undefined {
  try {
    refuseEmptied(path);
    refuseBrokenLog(path);
    const db = new DatabaseSync(path, { readOnly: true });
    try {
      const [first] = db.prepare("PRAGMA integrity_check(1)").all();
      const text = first?.["integrity_check"];
      return text === "ok" ? undefined : String(text);
    } finally {
      db.close();
    }
  } catch (caught) {
    return reasonOf(caught);
  }
}

/**
 * Makes a database at `path`, in a single file, from what can be read of the damaged one at `damaged`, which it
 * changes.
 * @param aside the name that the damaged one will have
 */
export async function makeReplacement(
  path: string,
  directory: string,
  damaged: string,
  aside: string,
): Promise<Replacement> {
  // Created first, so that its header can replace a destroyed one.
  (await SqliteStore.open(path, directory))[Symbol.dispose]();
  intoOneFile(path);
  const logIsSound = hasSoundLog(damaged);
  repairHeader(damaged, path);
  const found = salvage(damaged);
  const complete = found.complete && logIsSound;
  {
    using store = await SqliteStore.open(path, directory);
    store.transaction((): void => fill(store, found, complete ? undefined : aside));
  }
  intoOneFile(path);
  return { leases: found.leases.length, complete };
}

function hasSoundLog(path: string): boolean {
  try {
    refuseBrokenLog(path);
    return true;
  } catch {
    return false;
  }
}

/** The mark of a network's import from host-local. */
const takeOverMark = "host-local ";

function fill(store: SqliteStore, found: Salvage, missingFrom: string | undefined): void {
  let generation = Number(found.marks.get(generationMark) ?? "0") || 0;
  for (const lease of found.leases) generation = Math.max(generation, lease.generation);
  for (const lease of found.leases) store.put(lease.generation > 0 ? lease : { ...lease, generation: ++generation });
  for (const [name, value] of found.marks) {
    // If leases are missing, host-local's directory is to be imported again.
    if (missingFrom === undefined || !name.startsWith(takeOverMark)) store.setMark(name, value);
  }
  store.setMark(generationMark, String(generation));
  if (missingFrom !== undefined) declareIncomplete(store, missingFrom);
  for (const owner of found.pendingDetaches) store.setPendingDetach(owner, true);
  for (const { place, rangeSet, ip } of found.remembered) store.remember(place, rangeSet, ip, maxRememberedAddresses);
}

function intoOneFile(path: string): void {
  const db = new DatabaseSync(path);
  db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  db.close();
}

const headerBytes = 100;
/**
 * Magic text, page size, versions, fractions: the same in every database that we create (sqlite.org/fileformat2.html,
 * 1.3).
 */
const fixedBytes = 24;
const field = { changes: 24, pages: 28, freeList: 32, freePages: 36, validFor: 92 } as const;

/** Lets SQLite open a file whose header was overwritten or that was cut off; it would refuse both. */
function repairHeader(path: string, model: string): void {
  const wanted = headerOf(model);
  const pageBytes = wanted.getUint16(16);
  const pages = Math.max(1, Math.ceil(statSync(path).size / pageBytes));
  truncateSync(path, pages * pageBytes);
  const header = headerOf(path);
  const isFixed = [...Array(fixedBytes / 4).keys()].every((i) => header.getUint32(4 * i) === wanted.getUint32(4 * i));
  if (isFixed && header.getUint32(field.pages) <= pages) return;
  const repaired = isFixed ? header : wanted;
  repaired.setUint32(field.pages, pages);
  repaired.setUint32(field.validFor, repaired.getUint32(field.changes));
  for (const at of [field.freeList, field.freePages]) repaired.setUint32(at, 0);
  const fd = openSync(path, "r+");
  writeSync(fd, repaired, 0, headerBytes, 0);
  closeSync(fd);
}

function headerOf(path: string): DataView {
  const header = new DataView(new ArrayBuffer(headerBytes));
  const fd = openSync(path, "r");
  readSync(fd, header, 0, headerBytes, 0);
  closeSync(fd);
  return header;
}

/** Copies the database and its log; SQLite makes the index of the log anew. */
export function copyDatabase(from: string, to: string): void {
  for (const suffix of ["", "-wal"]) if (existsSync(from + suffix)) copyFileSync(from + suffix, to + suffix);
}
