import { CniCode, CniError } from "../../shared/errors.ts";
import { waitForLock } from "../../shared/os/file-lock.ts";
import { isWindows } from "../../shared/os/platform.ts";
import { reasonOf } from "../../shared/reason.ts";
import { storeLockMs } from "../store/sqlite-errors.ts";
import type { DatabaseFile } from "./database-file.ts";

/**
 * Makes this process the only one that has a database open; others wait, as they do for SQLite's locks. The kernel
 * releases it when the process ends.
 *
 * A process that has the database open itself must not ask for it: on Linux, closing this file would release the locks
 * of its own connection.
 */
export class ExclusiveLock implements Disposable {
  readonly #file: DatabaseFile;
  #closed = false;

  private constructor(file: DatabaseFile) {
    this.#file = file;
  }

  /**
   * @throws {CniError} code 11 where other processes keep the database open too long, 101 where the file cannot be
   * opened
   */
  static async take(path: string): Promise<ExclusiveLock> {
    const file = await open(path);
    try {
      if (!(await waitForLock(file, storeLockMs))) throw heldByOthers(path, file.holder());
      return new ExclusiveLock(file);
    } catch (caught) {
      file.close();
      throw caught;
    }
  }

  /** A descriptor for reading and writing the file. */
  get fd(): number {
    return this.#file.fd;
  }

  [Symbol.dispose](): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#file.close();
  }
}

async function open(path: string): Promise<DatabaseFile> {
  const { openDatabaseFile } = await (isWindows
    ? import("./database-file.windows.ts")
    : import("./database-file.linux.ts"));
  try {
    return openDatabaseFile(path);
  } catch (cause) {
    const is = reasonOf(cause);
    throw new CniError(
      CniCode.ipamFailure,
      `Cannot rebuild the lease database "${path}": it cannot be opened (${is}), wanted a file that this process may read and write`,
      { cause },
    );
  }
}

function heldByOthers(path: string, holder: number | undefined): CniError {
  const who = holder === undefined ? "another process" : `process ${holder}`;
  return new CniError(
    CniCode.tryAgainLater,
    `Cannot rebuild the lease database "${path}": ${who} kept it open for ${storeLockMs} ms`,
    { details: "If that is the agent, restart it: it rebuilds the database at its start" },
  );
}
