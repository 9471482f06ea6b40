import { CniCode, CniError } from "../../shared/errors.ts";
import { type LockFile, waitForLock } from "../../shared/os/file-lock.ts";
import { isWindows } from "../../shared/os/platform.ts";
import { reasonOf } from "../../shared/reason.ts";
import { lockName } from "./lease-file.ts";

/** host-local holds its lock for milliseconds; an import of 100,000 leases holds it for seconds. */
const lockTimeoutMs = 30_000;

/**
 * The lock that every host-local process holds while it reads or changes the directory. The kernel releases it when the
 * process ends; waiting for it does not block this process.
 */
export class DirectoryLock implements Disposable {
  #file: LockFile | undefined;

  private constructor(file: LockFile) {
    this.#file = file;
  }

  /**
   * Creates the lock file if it is missing, as host-local does.
   * @throws {CniError} code 5 where the file cannot be opened, 11 where others keep the lock too long
   */
  static async take(directory: string): Promise<DirectoryLock> {
    const path = `${directory}/${lockName}`;
    const file = await open(path);
    try {
      if (!(await waitForLock(file, lockTimeoutMs))) throw heldByOthers(path);
      return new DirectoryLock(file);
    } catch (caught) {
      file.close();
      throw caught;
    }
  }

  /** The lock file stays, as with host-local. */
  [Symbol.dispose](): void {
    this.#file?.close();
    this.#file = undefined;
  }
}

async function open(path: string): Promise<LockFile> {
  const { openLockFile } = await (isWindows ? import("./lock.windows.ts") : import("./lock.linux.ts"));
  try {
    return await openLockFile(path);
  } catch (cause) {
    const is = reasonOf(cause);
    throw new CniError(
      CniCode.io,
      `Cannot lock host-local's directory: "${path}" cannot be opened (${is}), wanted a file that this process may read and write`,
      { cause },
    );
  }
}

const heldByOthers = (path: string): CniError =>
  new CniError(
    CniCode.tryAgainLater,
    `Cannot lock host-local's directory: other processes held "${path}" for ${lockTimeoutMs} ms`,
    { details: "host-local holds it for milliseconds; look for a process of it that is stopped" },
  );
