import { randomBytes } from "node:crypto";
import { link, lstat, open, readdir, rename, unlink } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { retry } from "../../../shared/async/backoff.ts";
import { CniCode, CniError } from "../../../shared/errors.ts";
import { isWindows } from "../../../shared/os/platform.ts";
import { reasonOf } from "../../../shared/reason.ts";
import type { Step } from "./plan.ts";

/** A virus scanner holds a file that it has just seen for some tenths of a second. */
const busyRetries = 20;
const busyWaitMs = 100;

/** A temporary name beside `path` that no runtime takes for a plugin or a configuration. */
export const nameBeside = (path: string): string =>
  join(dirname(path), `.${basename(path)}.new-${process.pid}-${randomBytes(4).toString("hex")}`);

/** What a run that was killed may have left beside `path`. */
export const isLeftover = (path: string, name: string): boolean => name.startsWith(`.${basename(path)}.new-`);

/** The name of a running Windows executable that was replaced, until it ends: `pipette.exe.old-<hash>-<n>`. */
export const nameAside = (path: string, digest: string, n: number): string => `${path}.old-${digest.slice(0, 12)}-${n}`;

export const isSetAside = (path: string, name: string): boolean =>
  name.startsWith(`${basename(path)}.old-`) && /^[0-9a-f]{12}-\d+$/.test(name.slice(basename(path).length + 5));

/**
 * Replaces a file by a finished one. On Linux, and on Windows if the old one is not running, that is one rename. A
 * running executable of Windows can be renamed but not replaced: it is renamed first, and renamed back if the second
 * rename fails. A kill between the two leaves both files intact under their other names, for the next run.
 * @param digest SHA-256 of what stands at `path`, for the name that it gets; `undefined` if nothing does
 * @returns the new name of the old file, if it had to be renamed
 */
export async function placeFile(
  temporary: string,
  path: string,
  digest: string | undefined,
): Promise<string | undefined> {
  try {
    await rename(temporary, path);
    return undefined;
  } catch (caught) {
    if (!isWindows || digest === undefined || !isInUse(caught)) throw caught;
  }
  const aside = await freeNameAside(path, digest);
  await patiently(() => rename(path, aside));
  try {
    await patiently(() => rename(temporary, path));
  } catch (caught) {
    await rename(aside, path).catch(() => undefined);
    throw caught;
  }
  return aside;
}

/** Makes `path` another name of the file at `existing`; answers `false` where this file system knows no such thing. */
export async function linkBeside(existing: string, path: string): Promise<boolean> {
  try {
    await link(existing, path);
    return true;
  } catch (caught) {
    if (isMissing(caught)) throw caught;
    return false;
  }
}

/** Removes a file; `false` where Windows still runs it. One that is not there is success. */
export async function removeFile(path: string): Promise<boolean> {
  try {
    await unlink(path);
    return true;
  } catch (caught) {
    if (isMissing(caught)) return true;
    if (isWindows && isInUse(caught)) return false;
    throw caught;
  }
}

/**
 * The directory entry has to survive a power cut too. Windows cannot open a directory for that, and its file system
 * keeps a journal.
 */
export async function syncDirectory(path: string): Promise<void> {
  if (isWindows) return;
  await using directory = await open(path, "r");
  await directory.sync();
}

export async function freeNameAside(path: string, digest: string): Promise<string> {
  for (let n = 1; ; n++) {
    const name = nameAside(path, digest, n);
    if ((await lstat(name).catch(() => undefined)) === undefined) return name;
  }
}

const isInUse = (caught: unknown): boolean => ["EPERM", "EACCES", "EBUSY"].includes(codeOf(caught));

async function patiently(act: () => Promise<void>): Promise<void> {
  let left = busyRetries;
  await retry(act, {
    firstMs: busyWaitMs,
    longestMs: busyWaitMs,
    failed: (caught) => {
      if (left-- === 0 || !isInUse(caught)) throw caught;
    },
  });
}

export const isMissing = (caught: unknown): boolean => codeOf(caught) === "ENOENT";

/** `EACCES` and its like; empty where it is no error of the system. */
export const codeOf = (caught: unknown): string =>
  caught instanceof Error && "code" in caught && typeof caught.code === "string" ? caught.code : "";

/** @param action "write" */
export function failed(action: string, path: string, caught: unknown): CniError {
  const is = reasonOf(caught);
  return new CniError(CniCode.io, `Cannot ${action} "${path}": ${is}, wanted the rights and the room for it`, {
    cause: caught,
  });
}

/**
 * Plans the removal of unfinished files that killed runs have left beside `path`, and of replaced executables that no
 * longer run. The caller holds the installation's lock.
 * @param expected whether there may be more once the steps before it are done
 */
export async function planSweep(path: string, expected = false): Promise<readonly Step[]> {
  if (!expected && (await leftoversOf(path)).length === 0) return [];
  const run = async (): Promise<string> => {
    const names = await leftoversOf(path);
    const kept: string[] = [];
    for (const name of names) if (!(await swept(join(dirname(path), name)))) kept.push(name);
    return kept.length === 0 ? `${names.length} removed` : `still running, left for the next time: ${kept.join(", ")}`;
  };
  return [
    {
      action: "remove",
      target: join(dirname(path), `*${basename(path)}.*`),
      detail: "what earlier runs have left",
      run,
    },
  ];
}

const leftoversOf = async (path: string): Promise<readonly string[]> =>
  (await readdir(dirname(path)).catch(() => [])).filter((name) => isLeftover(path, name) || isSetAside(path, name));

async function swept(path: string): Promise<boolean> {
  try {
    return await removeFile(path);
  } catch (caught) {
    throw failed("remove", path, caught);
  }
}
