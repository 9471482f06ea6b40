import { CniCode, CniError } from "../../shared/errors.ts";
import { paths } from "../../shared/os/paths.ts";
import { isWindows } from "../../shared/os/platform.ts";
import { isAbsentNow } from "../../shared/os/read-now.linux.ts";
import { reasonOf } from "../../shared/reason.ts";
import { Fields } from "../../shared/schema/json-fields.ts";
import { type IpamSection, parseSection } from "./section.ts";

/** The size of a network's settings file: room for the longest `exclude` and many ranges. */
const maxSettingsFileBytes = 256 * 1024;

/**
 * Reads `<dataDir>/<network>.json`: keys of the `ipam` section, for use with a main plugin that passes on only the keys
 * that it knows. `undefined` where there is no such file, which costs one system call. Only ADD and STATUS read it.
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

/** Opens the file before it checks it, so that nobody can replace it in between; `undefined`: there is none. */
export async function readTrusted(path: string): Promise<Uint8Array | undefined> {
  // Loaded only where the file exists.
  const { closeSync, constants, fstatSync, lstatSync, openSync, readSync } = await import("node:fs");
  let file: number | undefined;
  try {
    // Windows has no O_NOFOLLOW.
    if (lstatSync(path).isSymbolicLink()) throw unreadable(path, "it is a symbolic link", "the file itself");
    file = openSync(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
    const found = fstatSync(file);
    if (!found.isFile()) throw unreadable(path, "it is no regular file", "one");
    requireTrusted(path, found);
    // One byte more than allowed, so that a file that grows meanwhile is noticed.
    const bytes = new Uint8Array(maxSettingsFileBytes + 1);
    const length = readSync(file, bytes, 0, bytes.length, 0);
    if (length > maxSettingsFileBytes)
      throw unreadable(path, `it is longer than ${maxSettingsFileBytes} bytes`, "no more than that");
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
  // On Windows the directory's permissions say who may write.
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
