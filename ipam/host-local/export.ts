import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { CniCode, CniError } from "../../shared/errors.ts";
import { formatIp, type Ip, parseIp } from "../../shared/net/ip.ts";
import { isWindows } from "../../shared/os/platform.ts";
import { reasonOf } from "../../shared/reason.ts";
import { inheritedCursorMark } from "../allocate/marks.ts";
import type { Allocator } from "../allocator.ts";
import type { Lease } from "../lease.ts";
import type { Store } from "../store/store.ts";
import { type DirectoryContent, readDirectory, type Unreadable } from "./directory.ts";
import { addressName, addressOfName, cursorName, holderText } from "./lease-file.ts";
import { DirectoryLock } from "./lock.ts";
import { readRecord, writeRecord } from "./record.ts";

export interface ExportOptions {
  /**
   * Created if missing. It must be empty, or the directory that this network's leases came from or were exported to
   * before.
   */
  readonly directory: string;
  readonly network: string;
  /** `_` for `:` in file names, as host-local has it on Windows. Default: as on this system. */
  readonly windows?: boolean;
  readonly onProgress?: ((progress: { readonly done: number; readonly total: number }) => void) | undefined;
}

export interface ExportReport {
  readonly directory: string;
  readonly network: string;
  /** Addresses in use that are in the directory now. */
  readonly leases: number;
  /** Files that were written, cursors among them, and files that were removed. */
  readonly written: number;
  readonly removed: number;
  /** Files that lay there before and were left alone. */
  readonly unreadable: readonly Unreadable[];
}

/** File names with their texts: what the directory should hold, or holds. */
type Files = Map<string, string>;

const filesPerReport = 500;
/** Leases may change while files are written; each round writes what has changed since the last. */
const maxRounds = 20;

/**
 * Writes the addresses in use and the cursors as host-local's files, so that host-local can continue with them. The
 * store keeps its leases and records that the directory is authoritative from now on: the next use of the network
 * imports it again.
 * @throws {CniError} code 5 where the directory holds something else or cannot be written, 11 where its lock is not
 * free or the leases keep changing
 */
export async function exportHostLocal(allocator: Allocator, given: ExportOptions): Promise<ExportReport> {
  const options = { ...given, directory: resolve(given.directory) };
  const { directory, network } = options;
  guarded(directory, () => mkdirSync(directory, { recursive: true, mode: 0o700 }));
  using _lock = await DirectoryLock.take(directory);
  const content = await readDirectory(directory, () => undefined);
  allocator.transaction((store): void => claim(store, options, content));
  const present = filesIn(content);
  const { unreadable } = content;
  let [written, removed] = [0, 0];
  for (let round = 0; round < maxRounds; round++) {
    const wanted = allocator.transaction((store): Files => {
      const files = wantedFiles(store, options);
      for (const { file } of unreadable) files.delete(file);
      // The directory becomes authoritative only when it agrees with the store.
      if (isSame(files, present)) settle(store, network, directory);
      return files;
    });
    if (isSame(wanted, present)) {
      const leases = [...wanted.keys()].filter((name) => addressOfName(name) !== undefined).length;
      return { directory, network, leases, written, removed, unreadable };
    }
    removed += removeFiles(present, wanted, directory);
    written += await writeFiles(present, wanted, options);
  }
  throw new CniError(
    CniCode.tryAgainLater,
    `Cannot export network "${network}": its leases changed in each of ${maxRounds} rounds`,
  );
}

/**
 * Records the directory before the first file is written, so that an interrupted export can be repeated; that the
 * directory is authoritative is recorded at the end.
 */
function claim(
  store: Store,
  { directory, network }: ExportOptions,
  { leases, cursors, unreadable }: DirectoryContent,
): void {
  const record = readRecord(store, network);
  const known = record !== undefined && record.t !== "none" ? record : undefined;
  const entries = leases.length + cursors.size + unreadable.length;
  if (entries > 0 && known?.directory !== directory) {
    throw new CniError(
      CniCode.io,
      `Cannot export network "${network}": "${directory}" holds ${entries} entries of something else, wanted an empty directory, or the one that its leases were taken over from`,
    );
  }
  writeRecord(store, network, { t: "taken", generation: known?.generation ?? 0, directory });
}

function settle(store: Store, network: string, directory: string): void {
  const record = readRecord(store, network);
  const generation = record === undefined || record.t === "none" ? 0 : record.generation;
  writeRecord(store, network, { t: "exported", generation, directory });
}

const filesIn = ({ leases, cursors }: DirectoryContent): Files =>
  new Map([
    ...leases.map(({ file, holder }) => [file, holderText(holder)] as const),
    ...[...cursors].map(([rangeSet, ip]) => [cursorName(rangeSet), formatIp(ip)] as const),
  ]);

function wantedFiles(store: Store, { network, windows = isWindows }: ExportOptions): Files {
  const leases = store.select({ by: "network", network });
  const files: Files = new Map();
  for (const { owner, address, state } of leases) {
    // A cooling address is free for host-local, which knows no cooldown.
    if (state === "cooling") continue;
    files.set(addressName(address.ip, windows), holderText({ containerId: owner.sandboxId, ifname: owner.ifname }));
  }
  for (const [rangeSet, ip] of cursorsOf(store, network, leases)) files.set(cursorName(rangeSet), formatIp(ip));
  return files;
}

const isSame = (a: Files, b: Files): boolean =>
  a.size === b.size && [...a].every(([name, text]) => b.get(name) === text);

function removeFiles(present: Files, wanted: Files, directory: string): number {
  let removed = 0;
  for (const name of [...present.keys()].filter((name) => !wanted.has(name))) {
    guarded(`${directory}/${name}`, () => rmSync(`${directory}/${name}`, { force: true }));
    present.delete(name);
    removed++;
  }
  return removed;
}

async function writeFiles(present: Files, wanted: Files, { directory, onProgress }: ExportOptions): Promise<number> {
  const missing = [...wanted].filter(([name, text]) => present.get(name) !== text);
  for (const [done, [name, text]] of missing.entries()) {
    const path = `${directory}/${name}`;
    guarded(path, () => {
      rmSync(path, { force: true });
      // The file must be created by this call, so that no link is followed.
      writeFileSync(path, text, { flag: "wx", mode: 0o600 });
    });
    present.set(name, text);
    if ((done + 1) % filesPerReport !== 0) continue;
    onProgress?.({ done: done + 1, total: missing.length });
    await Bun.sleep(0);
  }
  onProgress?.({ done: missing.length, total: missing.length });
  return missing.length;
}

function guarded(path: string, write: () => void): void {
  try {
    write();
  } catch (cause) {
    const is = reasonOf(cause);
    throw new CniError(
      CniCode.io,
      `Cannot export leases: "${path}" cannot be written (${is}), wanted a place to write to`,
      {
        cause,
      },
    );
  }
}

/**
 * The address that each range set of a network gave out last, by the set's index in the configuration, which is how
 * host-local names them. It is that of the set's youngest lease, or, if none was given since the import, the imported
 * cursor. An allocation deletes only leases that are older than its own, so the youngest is always there.
 */
export function cursorsOf(store: Store, network: string, leases: readonly Lease[]): ReadonlyMap<number, Ip> {
  const record = readRecord(store, network);
  const since = record === undefined || record.t === "none" ? 0 : record.generation;
  const youngest = new Map<number, Lease>();
  for (const lease of leases) {
    const before = youngest.get(lease.rangeSet)?.generation ?? since;
    if (lease.generation > before) youngest.set(lease.rangeSet, lease);
  }
  const cursors = new Map<number, Ip>();
  for (let rangeSet = 0; ; rangeSet++) {
    const inherited = parseIp(store.mark(inheritedCursorMark(network, rangeSet)) ?? "");
    const ip = youngest.get(rangeSet)?.address.ip ?? inherited;
    if (ip !== undefined) cursors.set(rangeSet, ip);
    else if (rangeSet > Math.max(-1, ...youngest.keys())) return cursors;
  }
}
