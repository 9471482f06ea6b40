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

/** Far behind the pid in the file: what is locked nobody else can read. */
const lockedByte = { first: 0x4000_0000, length: 1 };

/** Windows: a named mutex for a pipe, `LockFileEx` for a file. Its service manager hears of states in its own way. */
export function openWindowsSystem(): System {
  return {
    tryLock: (path) => (isPipeName(path) ? tryLockName(path) : tryLockFile(path)),
    socketPlace: (path) => new PipePlace(path),
    notify: () => undefined,
  };
}

/**
 * A mutex of this name for the whole machine, whichever session the process is in. That it exists is the lock: it
 * ends with its last handle. Names of pipes know neither case nor a difference between the slashes, those of a mutex do.
 *
 * Any user may make a mutex of that name first. One that is not an administrator's holds nobody up: then the pipe itself
 * keeps a second process away, whose first instance nobody can make twice.
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
  // What shuts administrators out, or is no mutex at all, was made by none of ours.
  const isOurs = handle !== 0 && isOfAdministrators(descriptors, Number(handle));
  release();
  if (!isOurs) return { t: "ours", release: () => undefined };
  return { t: "held", holder: serverOf(path.slice(0, -lockSuffix.length)) };
}

const administrators = "BA";

/** Only an administrator can make them the owners of what he makes; a list of rights anybody can copy. */
function isOfAdministrators(descriptors: Descriptors, handle: number): boolean {
  return descriptors.ownerOf(handle) === administrators && isAdministratorsOnly(descriptors.accessOf(handle));
}

const pipePrefix = "\\\\.\\pipe\\";
/** What `SocketServer` calls the lock of a socket. */
const lockSuffix = ".lock";

/** Whoever serves the pipe holds its lock; `undefined` where nobody does yet, or everybody is busy. */
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
