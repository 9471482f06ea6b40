import { closeSync, constants, ftruncateSync, readSync, writeSync } from "node:fs";
import { openOwnFile } from "../os/plain-file.ts";
import { type Libc, openLibc } from "./libc.linux.ts";
import { notifySystemd } from "./notify.linux.ts";
import { UnixSocketPlace } from "./socket-place.linux.ts";
import type { LockAttempt, System } from "./system.ts";

/** A pid of Linux has seven digits at most; a line ends it. */
const pidBytes = 16;

/** Linux: `flock(2)`, socket files, systemd. */
export function openLinuxSystem(): System {
  const libc = openLibc();
  return {
    tryLock: (path) => tryLockFile(libc, path),
    socketPlace: (path) => new UnixSocketPlace(path),
    notify: (env, state) => notifySystemd(env, libc, state),
  };
}

/** The pid inside is for messages only. The file stays: to remove it would let two processes lock two files of one name. */
function tryLockFile(libc: Libc, path: string): LockAttempt {
  // Not truncated by opening: until the lock is ours the pid inside is another's.
  const fd = openOwnFile(path, constants.O_RDWR | constants.O_CREAT);
  try {
    if (libc.lockFile(fd)) {
      ftruncateSync(fd, 0);
      writeSync(fd, `${process.pid}\n`, 0);
      return { t: "ours", release: () => closeSync(fd) };
    }
    const holder = beginningOf(fd).trim();
    closeSync(fd);
    return { t: "held", holder: /^\d+$/.test(holder) ? Number(holder) : undefined };
  } catch (caught) {
    closeSync(fd);
    throw caught;
  }
}

function beginningOf(fd: number): string {
  const bytes = new Uint8Array(pidBytes);
  return new TextDecoder().decode(bytes.subarray(0, readSync(fd, bytes, 0, bytes.length, 0)));
}
