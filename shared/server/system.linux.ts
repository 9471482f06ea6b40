import { closeSync, ftruncateSync, openSync, readFileSync, writeSync } from "node:fs";
import { type Libc, openLibc } from "./libc.linux.ts";
import { notifySystemd } from "./notify.linux.ts";
import { UnixSocketPlace } from "./socket-place.linux.ts";
import type { LockAttempt, System } from "./system.ts";

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
  const fd = openSync(path, "a+", 0o600);
  try {
    if (libc.lockFile(fd)) {
      ftruncateSync(fd, 0);
      writeSync(fd, `${process.pid}\n`, 0);
      return { t: "ours", release: () => closeSync(fd) };
    }
  } catch (caught) {
    closeSync(fd);
    throw caught;
  }
  closeSync(fd);
  const holder = readFileSync(path, "utf8").trim();
  return { t: "held", holder: /^\d+$/.test(holder) ? Number(holder) : undefined };
}
