import { CniCode, CniError } from "../../shared/errors.ts";
import { limits } from "../../shared/limits.ts";
import { isWindows } from "../../shared/platform.ts";
import { reasonOf } from "../../shared/reason.ts";

/**
 * Where SQLite keeps its locks in the file of a database (sqlite.org, os.h, "PENDING_BYTE"): every process that has it
 * open in WAL mode holds a part of them for as long.
 */
export const lockBytes = { first: 0x4000_0000, length: 512 } as const;

/** An open database file whose lock bytes can be taken from SQLite, as this system does it. */
export interface DatabaseFile {
  readonly fd: number;
  /** Without waiting; `false` where a process has the database open. */
  tryLock(): boolean;
  /** Which one; `undefined` where the system does not tell. */
  holder(): number | undefined;
  close(): void;
}

const firstPauseMs = 1;
const longestPauseMs = 20;

/**
 * The only process that has a database open, and the only one that can come to: others wait meanwhile, as they do for
 * each other. It is the kernel's, and ends with the process.
 *
 * Not to be had by a process that has the database open itself, and to be asked for by none: on Linux closing the
 * file would cost its own connection its locks.
 */
export class SoleUse implements Disposable {
  readonly #file: DatabaseFile;
  #closed = false;

  private constructor(file: DatabaseFile) {
    this.#file = file;
  }

  /** @throws {CniError} code 11 where others keep the database open too long, 101 where the file cannot be opened */
  static async take(path: string): Promise<SoleUse> {
    const file = await open(path);
    try {
      const deadline = performance.now() + limits.storeLockMs;
      for (let pauseMs = firstPauseMs; !file.tryLock(); pauseMs = Math.min(2 * pauseMs, longestPauseMs)) {
        if (performance.now() > deadline) throw heldByOthers(path, file.holder());
        await Bun.sleep(pauseMs);
      }
      return new SoleUse(file);
    } catch (caught) {
      file.close();
      throw caught;
    }
  }

  /** For reading and writing. */
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
  const { openDatabaseFile } = await (isWindows ? import("./sole-use.windows.ts") : import("./sole-use.linux.ts"));
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
    `Cannot rebuild the lease database "${path}": ${who} kept it open for ${limits.storeLockMs} ms, wanted nobody to use it`,
    { details: "If that is the agent, restart it: it rebuilds the database at its start" },
  );
}
