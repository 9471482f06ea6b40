/** An open file that can be locked, as this system does it. The lock is the kernel's, and ends with the process. */
export interface LockFile {
  /** Without waiting; `false` where another process has the lock. */
  tryLock(): boolean;
  /** Gives the lock up too. */
  close(): void;
}

const firstPauseMs = 1;
const maxPauseMs = 20;

/**
 * Waits, without holding this process up, for a lock that others hold for moments.
 * @returns `false` where it was never free within `timeoutMs`
 */
export async function waitForLock(file: LockFile, timeoutMs: number): Promise<boolean> {
  const deadline = performance.now() + timeoutMs;
  for (let pauseMs = firstPauseMs; !file.tryLock(); pauseMs = Math.min(2 * pauseMs, maxPauseMs)) {
    if (performance.now() > deadline) return false;
    await Bun.sleep(pauseMs);
  }
  return true;
}
