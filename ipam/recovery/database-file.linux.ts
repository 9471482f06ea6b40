import { dlopen, type Pointer, ptr, read } from "bun:ffi";
import { closeSync, constants, openSync } from "node:fs";
import { type DatabaseFile, lockBytes } from "./database-file.ts";

const symbols = {
  fcntl: { args: ["i32", "i32", "ptr"], returns: "i32" },
  __errno_location: { args: [], returns: "ptr" },
} as const;

/**
 * Locks of the open file description, not of the process (fcntl(2), "Open file description locks"): they stay when
 * another descriptor of the same file is closed, and still conflict with SQLite's own locks.
 */
const getLock = 36;
const setLock = 37;
const writeLock = 1;
const unlocked = 2;
const again = 11;
const mayNot = 13;
const interrupted = 4;

/** `struct flock` with offsets of 64 bits: type, whence, start, length, pid. */
const lockSize = 32;
const at = { type: 0, start: 8, length: 16, pid: 24 } as const;

/** Opened without following links, and without blocking on a named pipe. */
export function openDatabaseFile(path: string): DatabaseFile {
  const { O_RDWR, O_NOFOLLOW, O_NONBLOCK } = constants;
  const { fcntl, __errno_location } = dlopen("libc.so.6", symbols).symbols;
  const errno = (): number => read.i32(__errno_location() as Pointer, 0);
  const fd = openSync(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK);
  const asked = (): DataView => {
    // A buffer of its own does not move, so its address stays valid.
    const lock = new DataView(new ArrayBuffer(lockSize));
    lock.setInt16(at.type, writeLock, true);
    lock.setBigInt64(at.start, BigInt(lockBytes.first), true);
    lock.setBigInt64(at.length, BigInt(lockBytes.length), true);
    return lock;
  };
  return {
    fd,
    tryLock() {
      for (;;) {
        if (fcntl(fd, setLock, ptr(asked())) === 0) return true;
        const error = errno();
        if (error === again || error === mayNot) return false;
        if (error !== interrupted) throw new Error(`fcntl answers errno ${error}`);
      }
    },
    holder() {
      const lock = asked();
      if (fcntl(fd, getLock, ptr(lock)) !== 0 || lock.getInt16(at.type, true) === unlocked) return undefined;
      const pid = lock.getInt32(at.pid, true);
      // The kernel names no process for a lock of an open file description.
      return pid > 0 ? pid : undefined;
    },
    close: () => closeSync(fd),
  };
}
