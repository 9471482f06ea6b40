import { dlopen, FFIType, type Pointer, ptr } from "bun:ffi";

/**
 * `LockFileEx`, exclusive and without waiting (learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-lockfileex).
 * Not run on Windows yet.
 */
const symbols = {
  // Path (UTF-16), access, sharing, security, disposition, flags, template; answers a HANDLE.
  CreateFileW: { args: ["ptr", "u32", "u32", "ptr", "u32", "u32", "ptr"], returns: FFIType.ptr },
  // HANDLE, flags, reserved, bytes low, bytes high, OVERLAPPED; answers a BOOL.
  LockFileEx: { args: ["ptr", "u32", "u32", "u32", "u32", "ptr"], returns: "i32" },
  CloseHandle: { args: ["ptr"], returns: "i32" },
  GetLastError: { args: [], returns: "u32" },
} as const;

/** How a file is opened: made where it is missing, or only where it is there. */
export const disposition = { openExisting: 3, openAlways: 4 } as const;

const readAndWrite = 0xc000_0000;
const sharedByAll = 7;
/** Of a link the link itself is opened, which cannot be locked in place of what it leads to. */
const flags = 0x80 | 0x0020_0000;
/** All ones, as a number. */
const invalidHandle = 2 ** 64;
const exclusivelyNow = 2 | 1;
const lockViolation = 33;
const ioPending = 997;
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
  const { CreateFileW, LockFileEx, CloseHandle, GetLastError } = dlopen("kernel32.dll", symbols).symbols;
  const handle = CreateFileW(ptr(wide(path)), readAndWrite, sharedByAll, null, how, flags, null);
  if (handle === null || Number(handle) >= invalidHandle) throw new Error(`CreateFile answers error ${GetLastError()}`);
  return {
    tryLock({ first, length }) {
      const overlapped = new DataView(new ArrayBuffer(overlappedBytes));
      overlapped.setUint32(offsetAt, first, true);
      if (LockFileEx(handle as Pointer, exclusivelyNow, 0, length, 0, ptr(overlapped)) !== 0) return true;
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
