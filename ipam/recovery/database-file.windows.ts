import { closeSync, openSync } from "node:fs";
import { disposition, openLockableFile } from "../../shared/os/lockable-file.windows.ts";
import { type DatabaseFile, lockBytes } from "./database-file.ts";

/** The bytes that SQLite locks. Who holds them Windows does not say. */
export function openDatabaseFile(path: string): DatabaseFile {
  const file = openLockableFile(path, disposition.openExisting);
  // The content is far below the locked bytes, so a handle of its own may write it.
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
