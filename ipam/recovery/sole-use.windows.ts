import { dlopen, FFIType, type Pointer, ptr } from "bun:ffi";
import { closeSync, openSync } from "node:fs";
import { type DatabaseFile, lockBytes } from "./sole-use.ts";

/**
 * `LockFileEx` exclusively on the bytes that SQLite locks with it
 * (learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-lockfileex). Not run on Windows yet.
 */
const symbols = {
  // Path (UTF-16), access, sharing, security, disposition, flags, template; answers a HANDLE.
  CreateFileW: { args: ["ptr", "u32", "u32", "ptr", "u32", "u32", "ptr"], returns: FFIType.ptr },
  // HANDLE, flags, reserved, bytes low, bytes high, OVERLAPPED; answers a BOOL.
  LockFileEx: { args: ["ptr", "u32", "u32", "u32", "u32", "ptr"], returns: "i32" },
  CloseHandle: { args: ["ptr"], returns: "i32" },
  GetLastError: { args: [], returns: "u32" },
} as const;

const readAndWrite = 0xc000_0000;
const sharedByAll = 7;
const openExisting = 3;
const normalFile = 0x80;
/** All ones, as a number. */
const invalidHandle = 2 ** 64;
const exclusively = 2;
const failImmediately = 1;
const lockViolation = 33;
const ioPending = 997;
/** `OVERLAPPED`: status, then the offset at byte 16, an event. */
const overlappedBytes = 32;
const offsetAt = 16;

export function openDatabaseFile(path: string): DatabaseFile {
  const { CreateFileW, LockFileEx, CloseHandle, GetLastError } = dlopen("kernel32.dll", symbols).symbols;
  const handle = CreateFileW(ptr(wide(path)), readAndWrite, sharedByAll, null, openExisting, normalFile, null);
  if (handle === null || Number(handle) >= invalidHandle) throw new Error(`CreateFile answers error ${GetLastError()}`);
  // The content is far below the locked bytes, so a handle of its own may write it.
  const fd = openSync(path, "r+");
  return {
    fd,
    tryLock() {
      const overlapped = new DataView(new ArrayBuffer(overlappedBytes));
      overlapped.setUint32(offsetAt, lockBytes.first, true);
      const flags = exclusively | failImmediately;
      if (LockFileEx(handle as Pointer, flags, 0, lockBytes.length, 0, ptr(overlapped)) !== 0) return true;
      const error = GetLastError();
      if (error === lockViolation || error === ioPending) return false;
      throw new Error(`LockFileEx answers error ${error}`);
    },
    holder: () => undefined,
    close() {
      closeSync(fd);
      CloseHandle(handle as Pointer);
    },
  };
}

/** UTF-16 with its final zero, at an address that stays. */
function wide(text: string): Uint16Array {
  const units = new Uint16Array(new ArrayBuffer(2 * (text.length + 1)));
  for (let i = 0; i < text.length; i++) units[i] = text.charCodeAt(i);
  return units;
}
