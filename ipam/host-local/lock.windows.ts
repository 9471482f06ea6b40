import type { LockFile } from "../../shared/os/file-lock.ts";
import { disposition, openLockableFile } from "../../shared/os/lockable-file.windows.ts";

/** Go's file mutex, which host-local uses, locks the first byte on Windows. */
const firstByte = { first: 0, length: 1 };

export async function openLockFile(path: string): Promise<LockFile> {
  const file = openLockableFile(path, disposition.openAlways);
  return { tryLock: () => file.tryLock(firstByte), close: () => file.close() };
}
