import { closeSync, openSync } from "node:fs";
import { disposition, openLockableFile } from "../../shared/os/lockable-file.windows.ts";
import { type DatabaseFile, lockBytes } from "./database-file.ts";

/** Locks the bytes that SQLite locks. Windows does not tell who holds them. */
export function openDatabaseFile(path: string): DatabaseFile {
  const file = openLockableFile(path, disposition.openExisting);
  // The content lies far below the locked bytes, so another handle may write it.
  const fd = openSync(path, "r+");
  return {
    fd,
    tryLock: () => file.tryLock(lockBytes),
    holder: () => undefined,
    close() {
      closeSync(fd);
      file.close();
    },
  };
}
