import { randomBytes } from "node:crypto";
import { link, lstat, open, rename, unlink } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { isWindows } from "../../../shared/os/platform.ts";
import { codeOf, isMissing } from "./executable-file.ts";

/** A virus scanner holds a file that it has just seen for some tenths of a second. */
const busyRetries = 20;
const busyWaitMs = 100;

/** A name beside `path` that nobody else uses, and no runtime takes for a plugin or a configuration. */
export const nameBeside = (path: string): string =>
  join(dirname(path), `.${basename(path)}.new-${process.pid}-${randomBytes(4).toString("hex")}`);

/** What a run that was killed may have left beside `path`. */
export const isLeftover = (path: string, name: string): boolean => name.startsWith(`.${basename(path)}.new-`);

/** Under which a running executable of Windows goes on until it ends: `pipette.exe.old-<hash>-<n>`. */
export const nameAside = (path: string, digest: string, n: number): string => `${path}.old-${digest.slice(0, 12)}-${n}`;

export const isSetAside = (path: string, name: string): boolean =>
  name.startsWith(`${basename(path)}.old-`) && /^[0-9a-f]{12}-\d+$/.test(name.slice(basename(path).length + 5));

/**
 * Puts a finished file in the place of another. On Linux, and on Windows where nobody runs the old one, one rename. A
 * running executable of Windows can be renamed but not replaced: it goes aside first, and comes back where the second
 * rename fails. A kill between the two leaves both files whole under their other names, for the next run to finish.
 * @param digest SHA-256 of what stands at `path`, for the name that it gets; `undefined` where nothing does
 * @returns where the old one went, where it had to go anywhere
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

/** The name, too, must outlive a power cut. Windows opens no directory for that, and its file system keeps a log. */
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
  for (let left = busyRetries; ; left--) {
    try {
      return await act();
    } catch (caught) {
      if (left === 0 || !isInUse(caught)) throw caught;
      await Bun.sleep(busyWaitMs);
    }
  }
}
