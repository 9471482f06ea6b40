import { CniCode, CniError } from "../errors.ts";
import { reasonOf } from "../reason.ts";
import type { LockAttempt, System } from "./system.ts";

/** Keeps a second process of ours away from what the first one holds, for as long as it lives: `System.tryLock`. */
export class InstanceLock implements Disposable {
  readonly path: string;
  #release: (() => void) | undefined;

  private constructor(path: string, release: () => void) {
    this.path = path;
    this.#release = release;
  }

  /**
   * @param path of the lock, as in `System.tryLock`
   * @param who wants it, and what is locked, for the message: `the agent`, `socket "/run/…"`
   * @throws {CniError} code 5 naming the holder's pid
   */
  static take(path: string, who: string, what: string, system: System): InstanceLock {
    const attempt = tryLock(path, what, system);
    if (attempt.t === "ours") return new InstanceLock(path, attempt.release);
    throw new CniError(CniCode.io, `Cannot start ${who}: ${what} is held by process ${attempt.holder ?? "unknown"}`, {
      details: `lock "${path}"`,
    });
  }

  [Symbol.dispose](): void {
    this.#release?.();
    this.#release = undefined;
  }
}

function tryLock(path: string, what: string, system: System): LockAttempt {
  try {
    return system.tryLock(path);
  } catch (cause) {
    const reason = reasonOf(cause);
    throw new CniError(CniCode.io, `Cannot lock ${what}: ${reason}`, { cause });
  }
}
