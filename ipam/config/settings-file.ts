import { CniCode, CniError } from "../../shared/errors.ts";
import { limits } from "../../shared/limits.ts";
import { paths } from "../../shared/os/paths.ts";
import { isWindows } from "../../shared/os/platform.ts";
import { isAbsentNow } from "../../shared/os/read-now.linux.ts";
import { reasonOf } from "../../shared/reason.ts";
import { Fields } from "../../shared/schema/json-fields.ts";
import { type IpamSection, parseSection } from "./section.ts";

/**
 * Reads `<dataDir>/<network>.json`: keys of the `ipam` section for a main plugin that hands on only those that it
 * knows itself. `undefined` where there is no such file, which costs one system call; for ADD and STATUS only.
 * @param network its name, checked: it becomes part of a path
 * @throws {CniError} code 5 where the file is not to be trusted or cannot be read, 6 and 7 as for a configuration
 */
export async function readSettingsFile(dataDir: string, network: string): Promise<IpamSection | undefined> {
  const path = `${dataDir}${paths.directorySeparator}${network}.json`;
  if (!isWindows && isAbsentNow(path)) return undefined;
  const bytes = await readTrusted(path);
  if (bytes === undefined) return undefined;
  const fields = Fields.parse(new TextDecoder().decode(bytes), `settings file "${path}"`);
  if (fields.has("dataDir")) throw fields.wrong("dataDir", fields.get("dataDir"), "no such key: the file lies there");
  return parseSection(fields);
}

/** Opened first and judged then, so that nobody can put another file there in between; `undefined`: there is none. */
export async function readTrusted(path: string): Promise<Uint8Array | undefined> {
  // Only those who have the file pay for this.
  const { closeSync, constants, fstatSync, lstatSync, openSync, readSync } = await import("node:fs");
  let file: number | undefined;
  try {
    // Windows has no flag for it.
    if (lstatSync(path).isSymbolicLink()) throw unreadable(path, "it is a symbolic link", "the file itself");
    file = openSync(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
    const found = fstatSync(file);
    if (!found.isFile()) throw unreadable(path, "it is no regular file", "one");
    requireTrusted(path, found);
    // One byte more than is allowed, for a file that grows.
    const bytes = new Uint8Array(limits.settingsFileBytes + 1);
    const length = readSync(file, bytes, 0, bytes.length, 0);
    if (length > limits.settingsFileBytes)
      throw unreadable(path, `it is longer than ${limits.settingsFileBytes} bytes`, "no more than that");
    return bytes.subarray(0, length);
  } catch (caught) {
    if (caught instanceof CniError) throw caught;
    if (isAbsent(caught)) return undefined;
    throw unreadable(path, reasonOf(caught), "a readable file, or none", caught);
  } finally {
    if (file !== undefined) closeSync(file);
  }
}

function requireTrusted(path: string, { uid, mode }: { readonly uid: number; readonly mode: number }): void {
  const self = process.geteuid?.();
  // Windows: the directory's permissions say who may write.
  if (self === undefined) return;
  if (uid !== 0 && uid !== self) throw unreadable(path, `it belongs to user ${uid}`, `one of root or of user ${self}`);
  if ((mode & 0o022) !== 0)
    throw unreadable(path, `others may write it (mode ${(mode & 0o777).toString(8)})`, "mode 600, or 644");
}

function isAbsent(caught: unknown): boolean {
  const code = (caught as { code?: unknown }).code;
  return code === "ENOENT" || code === "ENOTDIR";
}

const unreadable = (path: string, is: string, wanted: string, cause?: unknown): CniError =>
  new CniError(CniCode.io, `Cannot read the settings file "${path}": ${is}, wanted ${wanted}`, { cause });
