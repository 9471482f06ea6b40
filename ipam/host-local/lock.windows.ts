import { dlopen, FFIType, type Pointer, ptr } from "bun:ffi";
import type { LockFile } from "./lock.ts";

/**
 * What Go's file mutex, which host-local uses, does on Windows: `LockFileEx` exclusively on the first byte
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
const openAlways = 4;
/** Of a link the link itself is opened, which cannot be locked in place of what it leads to. */
const normalFile = 0x80;
const openReparsePoint = 0x0020_0000;
/** All ones, as a number. */
const invalidHandle = 2 ** 64;
const exclusively = 2;
const failImmediately = 1;
const lockViolation = 33;
const ioPending = 997;
/** `OVERLAPPED`: status, the offset (zero: the first byte), an event. */
const overlappedBytes = 32;

export async function openLockFile(path: string): Promise<LockFile> {
  const { CreateFileW, LockFileEx, CloseHandle, GetLastError } = dlopen("kernel32.dll", symbols).symbols;
  const flags = normalFile | openReparsePoint;
  const handle = CreateFileW(ptr(wide(path)), readAndWrite, sharedByAll, null, openAlways, flags, null);
  if (handle === null || Number(handle) >= invalidHandle) throw new Error(`CreateFile answers error ${GetLastError()}`);
  return {
    tryLock() {
      const overlapped = new Uint8Array(new ArrayBuffer(overlappedBytes));
      if (LockFileEx(handle as Pointer, exclusively | failImmediately, 0, 1, 0, ptr(overlapped)) !== 0) return true;
      const error = GetLastError();
      if (error === lockViolation || error === ioPending) return false;
      throw new Error(`LockFileEx answers error ${error}`);
    },
    close: () => void CloseHandle(handle as Pointer),
  };
}

/** UTF-16 with its final zero, at an address that stays. */
function wide(text: string): Uint16Array {
  const units = new Uint16Array(new ArrayBuffer(2 * (text.length + 1)));
  for (let i = 0; i < text.length; i++) units[i] = text.charCodeAt(i);
  return units;
}
