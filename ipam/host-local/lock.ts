import { CniCode, CniError } from "../../shared/errors.ts";
import { limits } from "../../shared/limits.ts";
import { type LockFile, waitForLock } from "../../shared/os/file-lock.ts";
import { isWindows } from "../../shared/os/platform.ts";
import { reasonOf } from "../../shared/reason.ts";
import { lockName } from "./lease-file.ts";

/**
 * The lock that every process of host-local holds while it looks at the directory or changes it. It is the
 * kernel's, ends with the process, and is waited for without holding this process up.
 */
export class DirectoryLock implements Disposable {
  #file: LockFile | undefined;

  private constructor(file: LockFile) {
    this.#file = file;
  }

  /**
   * Makes the lock file where it is missing, as host-local does.
   * @throws {CniError} code 5 where the file cannot be opened, 11 where others keep the lock too long
   */
  static async take(directory: string): Promise<DirectoryLock> {
    const path = `${directory}/${lockName}`;
    const file = await open(path);
    try {
      if (!(await waitForLock(file, limits.hostLocalLockMs))) throw heldByOthers(path);
      return new DirectoryLock(file);
    } catch (caught) {
      file.close();
      throw caught;
    }
  }

  /** The file stays, as host-local leaves it. */
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
    `Cannot lock host-local's directory: other processes held "${path}" for ${limits.hostLocalLockMs} ms`,
    { details: "host-local holds it for milliseconds; look for a process of it that is stopped" },
  );
