import { Backoff } from "../async/backoff.ts";

/** An open file that can be locked, as this system does it. The lock is the kernel's, and ends with the process. */
export interface LockFile {
  /** Without waiting; `false` where another process has the lock. */
  tryLock(): boolean;
  /** Gives the lock up too. */
  close(): void;
}

const pauses = { firstMs: 1, longestMs: 20 };

/**
 * Waits, without holding this process up, for a lock that others hold for moments.
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
