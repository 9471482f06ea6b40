import { createHash } from "node:crypto";
import { type FileHandle, lstat, mkdir, open, stat, unlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { CniCode, CniError } from "../../../shared/errors.ts";
import { paths } from "../../../shared/os/paths.ts";
import {
  failed,
  freeNameAside,
  isMissing,
  linkBeside,
  nameBeside,
  placeFile,
  removeFile,
  syncDirectory,
} from "./files.ts";
import type { Step } from "./plan.ts";

/** The size of the chunks in which executables are read and copied. */
const chunkBytes = 1024 * 1024;

/** Both names of the executable in `directory`, the plugin's and agent's first. */
export const executablesIn = (directory: string): readonly [string, string] => [
  join(directory, `pipette${paths.executableSuffix}`),
  join(directory, `pipette-ipam${paths.executableSuffix}`),
];

/**
 * Plans to install the executable `from` in `directory` under both names, the second as a hard link if the file system
 * supports it.
 * @throws {CniError} code 5 where something is in the way; nothing was changed
 */
export async function planExecutables(from: string, directory: string): Promise<readonly Step[]> {
  const reader = new ExecutableReader();
  const source = await reader.contentsOf(from);
  if (!source.marked)
    throw new CniError(
      CniCode.io,
      `Cannot install "${from}": it is no executable of Pipette, wanted one that "npm run build" has made`,
    );
  const present = await directoryIsThere(directory);
  const [main, ipam] = executablesIn(directory);
  const place = async (path: string, write: (temporary: string) => Promise<void>): Promise<Step> => {
    const old: ExecutableFile = present ? await reader.lookAt(path) : { t: "absent" };
    const detail = `${(source.bytes / 1e6).toFixed(1)} MB, SHA-256 ${source.digest.slice(0, 12)}…`;
    if (old.t === "ours" && old.digest === source.digest && (old.runnable || paths.executableSuffix !== ""))
      return { action: "keep", target: path, detail: `${detail}, the same already` };
    const run = () => put(path, old, source.digest, { write, reader });
    return { action: old.t === "absent" ? "create" : "replace", target: path, detail, run };
  };
  const copy = (temporary: string) => copyWhole(from, temporary);
  return [
    ...(present ? [] : [makeDirectory(directory)]),
    await place(main, copy),
    await place(ipam, async (temporary) => {
      if (!(await linkBeside(main, temporary))) await copy(temporary);
    }),
  ];
}

/**
 * Plans the removal of both, and of files that running executables have left. @throws {CniError} where another's file
 * has the name
 */
export async function planRemoval(directory: string): Promise<readonly Step[]> {
  if (!(await directoryIsThere(directory))) return [];
  const reader = new ExecutableReader();
  const steps: Step[] = [];
  for (const path of executablesIn(directory).toReversed()) {
    const old = await reader.lookAt(path);
    if (old.t === "absent") steps.push({ action: "none", target: path, detail: "is not there" });
    else steps.push({ action: "remove", target: path, detail: "", run: () => takeAway(path, old.digest) });
  }
  return steps;
}

async function put(
  path: string,
  old: ExecutableFile,
  digest: string,
  { write, reader }: { readonly write: (temporary: string) => Promise<void>; readonly reader: ExecutableReader },
): Promise<string | undefined> {
  const temporary = nameBeside(path);
  try {
    await write(temporary);
    const written = await reader.contentsOf(temporary);
    if (written.digest !== digest)
      throw new CniError(
        CniCode.io,
        `Cannot write "${path}": its SHA-256 reads back as ${written.digest}, wanted ${digest}`,
      );
    const aside = await placeFile(temporary, path, old.t === "ours" ? old.digest : undefined);
    await syncDirectory(dirname(path));
    return aside === undefined ? undefined : `the running one goes on as "${aside}"`;
  } catch (caught) {
    await unlink(temporary).catch(() => undefined);
    throw caught instanceof CniError ? caught : failed("write", path, caught);
  }
}

/** As a new file, on the disk before this answers. */
async function copyWhole(from: string, to: string): Promise<void> {
  await using source = await open(from, "r");
  await using target = await open(to, "wx", 0o755);
  const buffer = new Uint8Array(chunkBytes);
  for (;;) {
    const { bytesRead } = await source.read(buffer, 0, chunkBytes);
    if (bytesRead === 0) break;
    for (let at = 0; at < bytesRead; ) at += (await target.write(buffer, at, bytesRead - at)).bytesWritten;
  }
  // Set explicitly, because the installing user's umask could keep the runtime from running it.
  await target.chmod(0o755);
  await target.sync();
}

async function takeAway(path: string, digest: string): Promise<string | undefined> {
  try {
    if (await removeFile(path)) return undefined;
    const aside = await freeNameAside(path, digest);
    await placeFile(path, aside, undefined);
    const { removeAtReboot } = await import("./windows-files.windows.ts");
    return `it runs; goes on as "${aside}", gone ${removeAtReboot(aside) ? "with the next start of the machine" : "with the next run"}`;
  } catch (caught) {
    throw failed("remove", path, caught);
  }
}

function makeDirectory(directory: string): Step {
  const run = async (): Promise<undefined> => {
    await mkdir(directory, { recursive: true, mode: 0o755 }).catch((caught) => {
      throw failed("make", directory, caught);
    });
  };
  return { action: "create", target: directory, detail: "directory", run };
}

async function directoryIsThere(path: string): Promise<boolean> {
  try {
    if ((await stat(path)).isDirectory()) return true;
  } catch (caught) {
    if (isMissing(caught)) return false;
    throw failed("look at", path, caught);
  }
  throw new CniError(CniCode.io, `Cannot install into "${path}": it is no directory, wanted one, or nothing`);
}

/**
 * A mark that every executable of ours contains, because this file is part of it. It identifies our executables without
 * running them, also of other releases, so it never changes.
 */
const mark = "pipette:executable:b9b2a6d0c1f84a6e";

/** What exists at the path of an executable of ours. */
export type ExecutableFile =
  | { readonly t: "absent" }
  | {
      readonly t: "ours";
      /** SHA-256, in hexadecimal. */
      readonly digest: string;
      readonly bytes: number;
      readonly runnable: boolean;
    };

/** What a file holds. */
export interface FileContents {
  /** SHA-256, in hexadecimal. */
  readonly digest: string;
  readonly bytes: number;
  readonly marked: boolean;
}

/** Reads executables; a file with two names is read once, since it has more than 100 MB. */
export class ExecutableReader {
  readonly #read = new Map<string, FileContents>();

  /**
   * Examines what exists at `path`, following no link.
   * @throws {CniError} code 5 where it is something that may not be replaced: a link, a directory, another program
   */
  async lookAt(path: string): Promise<ExecutableFile> {
    const refuse = (is: string): CniError =>
      new CniError(CniCode.io, `Cannot replace "${path}": it is ${is}, wanted an executable of Pipette, or nothing`);
    const stat = await lstat(path).catch((caught: unknown) => {
      if (isMissing(caught)) return undefined;
      throw failed("look at", path, caught);
    });
    if (stat === undefined) return { t: "absent" };
    if (stat.isSymbolicLink()) throw refuse("a symbolic link");
    if (!stat.isFile()) throw refuse(stat.isDirectory() ? "a directory" : "no file");
    const { digest, bytes, marked } = await this.contentsOf(path);
    if (!marked) throw refuse("another program");
    return { t: "ours", digest, bytes, runnable: (stat.mode & 0o111) === 0o111 };
  }

  /** @throws {CniError} code 5 where it cannot be read */
  async contentsOf(path: string): Promise<FileContents> {
    try {
      await using file = await open(path, "r");
      const { dev, ino, size, mtimeNs } = await file.stat({ bigint: true });
      const identity = `${dev}:${ino}:${size}:${mtimeNs}`;
      const contents = this.#read.get(identity) ?? (await readWhole(file));
      // Without file numbers two names of one file cannot be recognised.
      if (ino !== 0n) this.#read.set(identity, contents);
      return contents;
    } catch (caught) {
      throw failed("read", path, caught);
    }
  }
}

async function readWhole(file: FileHandle): Promise<FileContents> {
  const hash = createHash("sha256");
  const needle = new TextEncoder().encode(mark);
  // With room for the end of the previous chunk, in which the mark may begin.
  const buffer = Buffer.allocUnsafe(needle.length + chunkBytes);
  let [kept, bytes, marked] = [0, 0, false];
  for (;;) {
    const { bytesRead } = await file.read(buffer, kept, chunkBytes);
    if (bytesRead === 0) return { digest: hash.digest("hex"), bytes, marked };
    hash.update(buffer.subarray(kept, kept + bytesRead));
    bytes += bytesRead;
    const held = kept + bytesRead;
    marked ||= buffer.subarray(0, held).includes(needle);
    kept = Math.min(needle.length, held);
    buffer.copyWithin(0, held - kept, held);
  }
}
