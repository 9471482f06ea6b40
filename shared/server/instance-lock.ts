import { closeSync, ftruncateSync, openSync, readFileSync, writeSync } from "node:fs";
import { CniCode, CniError } from "../errors.ts";
import type { Libc } from "./libc.linux.ts";

/**
 * Keeps a second process of ours away from what the first one holds. The lock is the kernel's and dies with the
 * process, however it ends; the pid inside the file is for the message only. The file itself stays: to
 * remove it would let two processes hold locks on two files of one name.
 */
export class InstanceLock implements Disposable {
  readonly path: string;
  #fd: number | undefined;

  private constructor(path: string, fd: number) {
    this.path = path;
    this.#fd = fd;
  }

  /**
   * @param who wants it, and what is locked, for the message: `the agent`, `socket "/run/…"`
   * @throws {CniError} code 5 naming the holder's pid
   */
  static take(path: string, who: string, what: string, libc: Libc): InstanceLock {
    const fd = openLockFile(path, what);
    if (!libc.lockFile(fd)) {
      const holder = readFileSync(path, "utf8").trim();
      closeSync(fd);
      throw new CniError(
        CniCode.io,
        `Cannot start ${who}: ${what} is held by process ${/^\d+$/.test(holder) ? holder : "unknown"}, wanted nobody to hold it`,
        { details: `lock file "${path}"` },
      );
    }
    ftruncateSync(fd, 0);
    writeSync(fd, `${process.pid}\n`, 0);
    return new InstanceLock(path, fd);
  }

  [Symbol.dispose](): void {
    if (this.#fd === undefined) return;
    closeSync(this.#fd);
    this.#fd = undefined;
  }
}

function openLockFile(path: string, what: string): number {
  try {
    // Not truncated by opening: until the lock is ours the pid inside is another's.
    return openSync(path, "a+", 0o600);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new CniError(CniCode.io, `Cannot lock ${what}: ${reason}, wanted a lock file that can be written`, { cause });
  }
}
