import { createHash } from "node:crypto";
import { type FileHandle, lstat, open } from "node:fs/promises";
import { CniCode, CniError } from "../../../shared/errors.ts";
import { reasonOf } from "../../../shared/reason.ts";

/**
 * Stands in every executable of ours, because this file is part of it: so an executable can be told from another
 * program's without running it. Releases know each other by it, so it never changes.
 */
const mark = "pipette:executable:b9b2a6d0c1f84a6e";
const chunkBytes = 1024 * 1024;

/** What stands at a path where an executable of ours is to be. */
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

/** Reads executables, and one that has two names once: it has 100 MB and more. */
export class ExecutableReader {
  readonly #read = new Map<string, FileContents>();

  /**
   * Looks at what stands at `path`, following no link.
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
      // Where a file system numbers no files, nothing is known of them.
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
  // Room for the end of the chunk before, in which the mark may begin.
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
