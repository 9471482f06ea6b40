import { dlopen, FFIType, ptr } from "bun:ffi";
import { readFileSync, writeFileSync } from "node:fs";
import {
  administratorsOnly,
  type Descriptors,
  isAdministratorsOnly,
  openDescriptors,
} from "../os/descriptor.windows.ts";
import { disposition, openLockableFile } from "../os/lockable-file.windows.ts";
import { isPipeName, openPipes, pipeAccess } from "../os/pipe.windows.ts";
import { systemLibrary, wide, winError } from "../os/win32.windows.ts";
import { PipePlace } from "./pipe-place.windows.ts";
import type { LockAttempt, System } from "./system.ts";

const symbols = {
  CreateMutexW: { args: ["ptr", "i32", "ptr"], returns: FFIType.i64_fast },
  CloseHandle: { args: ["i64"], returns: "i32" },
  GetLastError: { args: [], returns: "u32" },
} as const;

/** Far behind the pid in the file, because others cannot read locked bytes. */
const lockedByte = { first: 0x4000_0000, length: 1 };

/** Windows: a named mutex for a pipe, `LockFileEx` for a file. The service manager is told of states elsewhere. */
export function openWindowsSystem(): System {
  return {
    tryLock: (path) => (isPipeName(path) ? tryLockName(path) : tryLockFile(path)),
    socketPlace: (path) => new PipePlace(path),
    notify: () => undefined,
  };
}

/**
 * A machine-wide mutex, whichever session the process is in. Its existence is the lock; it ends with its last handle.
 * The name is normalised, because names of pipes ignore case and the kind of slash and those of mutexes do not.
 *
 * Any user may create a mutex of that name first. One that no administrator owns is ignored: then the pipe itself keeps
 * a second process away, because its first instance can only be created once.
 */
function tryLockName(path: string): LockAttempt {
  const k = dlopen(systemLibrary("kernel32.dll"), symbols).symbols;
  const descriptors = openDescriptors();
  const name = `Global\\pipette:${path.slice(pipePrefix.length).toLowerCase().replaceAll("\\", "/")}`;
  using descriptor = descriptors.parse(`O:${administrators}${administratorsOnly}`);
  const handle = k.CreateMutexW(ptr(descriptor.attributes()), 0, ptr(wide(name)));
  const error = k.GetLastError();
  if (handle === 0 && error !== winError.accessDenied && error !== winError.invalidHandle)
    throw new Error(`CreateMutex answers error ${error}`);
  const release = (): void => {
    if (handle !== 0) k.CloseHandle(handle);
  };
  if (handle !== 0 && error !== winError.alreadyExists) return { t: "ours", release };
  // A mutex that denies access to administrators, or an object of another kind, is not ours.
  const isOurs = handle !== 0 && isOfAdministrators(descriptors, Number(handle));
  release();
  if (!isOurs) return { t: "ours", release: () => undefined };
  return { t: "held", holder: serverOf(path.slice(0, -lockSuffix.length)) };
}

const administrators = "BA";

/**
 * Checked by owner, because only an administrator can make the administrators owner, while anybody can copy an access
 * list.
 */
function isOfAdministrators(descriptors: Descriptors, handle: number): boolean {
  return descriptors.ownerOf(handle) === administrators && isAdministratorsOnly(descriptors.accessOf(handle));
}

const pipePrefix = "\\\\.\\pipe\\";
/** The suffix of a socket's lock in `SocketServer`. */
const lockSuffix = ".lock";

/** The process that serves the pipe, which holds its lock; `undefined` if there is none yet, or no free instance. */
function serverOf(pipe: string): number | undefined {
  const pipes = openPipes();
  const attempt = pipes.open(pipe, pipeAccess.look);
  if (attempt.t === "failed") return undefined;
  const server = pipes.serverOf(attempt.handle);
  pipes.close(attempt.handle);
  return server;
}

function tryLockFile(path: string): LockAttempt {
  const file = openLockableFile(path, disposition.openAlways);
  try {
    if (file.tryLock(lockedByte)) {
      writeFileSync(path, `${process.pid}\n`);
      return { t: "ours", release: () => file.close() };
    }
  } catch (caught) {
    file.close();
    throw caught;
  }
  file.close();
  const holder = readFileSync(path, "utf8").trim();
  return { t: "held", holder: /^\d+$/.test(holder) ? Number(holder) : undefined };
}
