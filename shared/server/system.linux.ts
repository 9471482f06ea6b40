import { closeSync, constants, ftruncateSync, readSync, writeSync } from "node:fs";
import { openOwnFile } from "../os/plain-file.ts";
import { type Libc, openLibc } from "./libc.linux.ts";
import { UnixSocketPlace } from "./socket-place.linux.ts";
import type { LockAttempt, System } from "./system.ts";

/** A pid of Linux has seven digits at most, and a line end follows. */
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

/**
 * The pid inside is for messages only. The file is never removed: otherwise two processes could lock two files of one
 * name.
 */
function tryLockFile(libc: Libc, path: string): LockAttempt {
  // Not truncated on opening, because until the lock is taken the pid inside is another process's.
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

/**
 * systemd's readiness protocol (sd_notify(3)): one datagram to the socket that `NOTIFY_SOCKET` names.
 * Without it nothing happens. Answers what went wrong, in words, or `undefined`.
 */
function notifySystemd(
  env: Readonly<Record<string, string | undefined>>,
  libc: Libc,
  state: string,
): string | undefined {
  const socket = env["NOTIFY_SOCKET"] ?? "";
  if (socket === "") return undefined;
  if (!socket.startsWith("/") && !socket.startsWith("@"))
    return `Cannot notify systemd: NOTIFY_SOCKET is "${socket}", wanted a path or an abstract name`;
  const errno = libc.sendDatagram(socket, state);
  return errno === 0
    ? undefined
    : `Cannot notify systemd: "${socket}" answers errno ${errno}, wanted it to take "${state}"`;
}
