import { constants } from "node:fs";
import { lstat, open, rename, unlink } from "node:fs/promises";
import { CniCode, CniError } from "../../shared/errors.ts";
import { reasonOf } from "../../shared/reason.ts";

/**
 * Writes a file as a whole or not at all, readable for its owner alone. An existing path must be a regular file,
 * because root must not follow a symbolic link of another user.
 * @throws {CniError} code 5 naming the path
 */
export async function writeFileWhole(path: string, text: string): Promise<void> {
  const temporary = `${path}.${process.pid}.tmp`;
  const cannot = (is: string, wanted: string, cause?: unknown): CniError =>
    new CniError(CniCode.io, `Cannot write "${path}": ${is}, wanted ${wanted}`, { cause });
  const present = await lstat(path).catch(() => undefined);
  if (present !== undefined && !present.isFile())
    throw cannot(present.isSymbolicLink() ? "it is a symbolic link" : "it is no file", "a file, or nothing");
  try {
    const { O_CREAT, O_EXCL, O_NOFOLLOW, O_WRONLY } = constants;
    await using file = await open(temporary, O_CREAT | O_EXCL | O_WRONLY | (O_NOFOLLOW ?? 0), 0o600);
    await file.writeFile(text);
    await file.sync();
    await rename(temporary, path);
  } catch (cause) {
    await unlink(temporary).catch(() => undefined);
    throw cannot(reasonOf(cause), "a directory that can be written", cause);
  }
}
