import { createHash } from "node:crypto";
import { type FileHandle, lstat, open } from "node:fs/promises";
import { CniCode, CniError } from "../../../shared/errors.ts";
import { longestCarriedBytes, mark, readMark } from "./executable-marks.ts";
import { failed, isMissing } from "./files.ts";

/** The size of the chunks in which executables are read. */
const chunkBytes = 1024 * 1024;
/** Marks that are read of one file: a whole program has four, because it contains its code as text and compiled. */
const maxMarks = 16;

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
  readonly program: "whole" | "small" | "another";
  /** The small program that a whole one carries; absent if it was compiled without. */
  readonly carried?: Uint8Array;
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
    const { digest, bytes, program } = await this.contentsOf(path);
    if (program === "another") throw refuse("another program");
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
  const needle = Buffer.from(mark);
  const marks: number[] = [];
  // With room for the end of the previous chunk, in which a mark may begin.
  const buffer = Buffer.allocUnsafe(needle.length + chunkBytes);
  let [kept, bytes] = [0, 0];
  for (;;) {
    const { bytesRead } = await file.read(buffer, kept, chunkBytes);
    if (bytesRead === 0) break;
    hash.update(buffer.subarray(kept, kept + bytesRead));
    const held = buffer.subarray(0, kept + bytesRead);
    for (let at = held.indexOf(needle); at >= 0 && marks.length < maxMarks; at = held.indexOf(needle, at + 1))
      marks.push(bytes - kept + at);
    bytes += bytesRead;
    kept = Math.min(needle.length - 1, held.length);
    buffer.copyWithin(0, held.length - kept, held.length);
  }
  return { digest: hash.digest("hex"), bytes, ...(await told(file, marks)) };
}

/** What the marks at these offsets say about the file. */
async function told(file: FileHandle, marks: readonly number[]): Promise<Pick<FileContents, "program" | "carried">> {
  if (marks.length === 0) return { program: "another" };
  const buffer = Buffer.alloc(longestCarriedBytes);
  for (const at of marks) {
    const { bytesRead } = await file.read(buffer, 0, longestCarriedBytes, at + mark.length);
    const found = readMark(buffer.subarray(0, bytesRead));
    if (found.t === "small") return { program: "small" };
    if (found.t === "carried") return { program: "whole", carried: found.program };
  }
  return { program: "whole" };
}
