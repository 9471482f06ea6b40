import { dlopen, FFIType, ptr } from "bun:ffi";
import { invalidHandle, systemLibrary, wide, winError } from "./win32.windows.ts";

/** `LockFileEx`, exclusive and without waiting (learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-lockfileex). */
const symbols = {
  // Path (UTF-16), access, sharing, security, disposition, flags, template; answers a HANDLE.
  CreateFileW: { args: ["ptr", "u32", "u32", "ptr", "u32", "u32", "ptr"], returns: FFIType.i64_fast },
  // HANDLE, flags, reserved, bytes low, bytes high, OVERLAPPED; answers a BOOL.
  LockFileEx: { args: ["i64", "u32", "u32", "u32", "u32", "ptr"], returns: "i32" },
  CloseHandle: { args: ["i64"], returns: "i32" },
  GetLastError: { args: [], returns: "u32" },
} as const;

/** How a file is opened: made where it is missing, or only where it is there. */
export const disposition = { openExisting: 3, openAlways: 4 } as const;

const readAndWrite = 0xc000_0000;
const sharedByAll = 7;
/** A link itself is opened instead of its target, so that root's lock follows no link. */
const flags = 0x80 | 0x0020_0000;
const exclusivelyNow = 2 | 1;
/** `OVERLAPPED`: status, then the offset at byte 16, an event. */
const overlappedBytes = 32;
const offsetAt = 16;

/** A handle whose locks end with it. */
export interface LockableFile {
  /** `false` where another process has locked one of these bytes. */
  tryLock(bytes: { readonly first: number; readonly length: number }): boolean;
  close(): void;
}

export function openLockableFile(path: string, how: number): LockableFile {
  const { CreateFileW, LockFileEx, CloseHandle, GetLastError } = dlopen(systemLibrary("kernel32.dll"), symbols).symbols;
  const handle = CreateFileW(ptr(wide(path)), readAndWrite, sharedByAll, null, how, flags, null);
  if (handle === invalidHandle) throw new Error(`CreateFile answers error ${GetLastError()}`);
  return {
    tryLock({ first, length }) {
      const overlapped = new DataView(new ArrayBuffer(overlappedBytes));
      overlapped.setUint32(offsetAt, first, true);
      if (LockFileEx(handle, exclusivelyNow, 0, length, 0, ptr(overlapped)) !== 0) return true;
      const error = GetLastError();
      if (error === winError.lockViolation || error === winError.ioPending) return false;
      throw new Error(`LockFileEx answers error ${error}`);
    },
    close: () => void CloseHandle(handle),
  };
}
