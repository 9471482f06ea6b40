import { closeSync, constants, openSync } from "node:fs";
import type { LockFile } from "../../shared/os/file-lock.ts";

/**
 * Locked with `flock(2)`, as Go's file mutex does it. Opened without following links, and without blocking on a named
 * pipe.
 */
export async function openLockFile(path: string): Promise<LockFile> {
  const { O_RDWR, O_CREAT, O_NOFOLLOW, O_NONBLOCK } = constants;
  const libc = (await import("../../shared/server/libc.linux.ts")).openLibc();
  const fd = openSync(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0o600);
  return { tryLock: () => libc.lockFile(fd), close: () => closeSync(fd) };
}
