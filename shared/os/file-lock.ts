import { Backoff } from "../async/backoff.ts";

/** An open file that can be locked, in this system's way. The kernel releases the lock when the process ends. */
export interface LockFile {
  /** Tries once; `false` if another process has the lock. */
  tryLock(): boolean;
  /** Closes the file and releases the lock. */
  close(): void;
}

const pauses = { firstMs: 1, longestMs: 20 };

/**
 * Waits, without blocking this process, for a lock that others hold for moments.
 * @returns `false` where it was never free within `timeoutMs`
 */
export async function waitForLock(file: LockFile, timeoutMs: number): Promise<boolean> {
  const deadline = performance.now() + timeoutMs;
  const backoff = new Backoff(pauses);
  while (!file.tryLock()) {
    if (performance.now() > deadline) return false;
    await Bun.sleep(backoff.next());
  }
  return true;
}
