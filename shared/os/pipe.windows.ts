import { dlopen, FFIType, ptr } from "bun:ffi";
import { invalidHandle, systemLibrary, wide } from "./win32.windows.ts";

const symbols = {
  CreateFileW: { args: ["ptr", "u32", "u32", "ptr", "u32", "u32", "ptr"], returns: FFIType.i64_fast },
  WaitNamedPipeW: { args: ["ptr", "u32"], returns: "i32" },
  GetNamedPipeServerProcessId: { args: ["i64", "ptr"], returns: "i32" },
  CloseHandle: { args: ["i64"], returns: "i32" },
  GetLastError: { args: [], returns: "u32" },
} as const;

/** What a handle of a pipe is for. */
export const pipeAccess = {
  /** READ_CONTROL: to read its access list. */
  look: 0x0002_0000,
  /** With WRITE_DAC: to change its access list. */
  protect: 0x0006_0000,
  /** GENERIC_READ and GENERIC_WRITE: to transfer data. */
  talk: 0xc000_0000,
} as const;

const openExisting = 3;
/** Overlapped, and with an impersonation level at which a false server can identify us but not act as us. */
const flags = 0x4000_0000 | 0x0010_0000 | 0x0001_0000;

export type PipeHandle =
  | { readonly t: "open"; readonly handle: number }
  /** An error of Windows, as in `winError`. */
  | { readonly t: "failed"; readonly error: number };

/** The client's end of named pipes. Each opened handle is a connection for the server. */
export interface Pipes {
  open(name: string, access: number): PipeHandle;
  /** Waits until an instance is free, or the time (at least 1 ms) is over; the pipe may disappear meanwhile. */
  waitForInstance(name: string, timeoutMs: number): void;
  /** The process at the other end; `undefined` where Windows does not tell. */
  serverOf(handle: number): number | undefined;
  close(handle: number): void;
}

export function openPipes(): Pipes {
  const k = dlopen(systemLibrary("kernel32.dll"), symbols).symbols;
  return {
    open(name, access) {
      const handle = Number(k.CreateFileW(ptr(wide(name)), access, 0, null, openExisting, flags, null));
      return handle === invalidHandle ? { t: "failed", error: k.GetLastError() } : { t: "open", handle };
    },
    waitForInstance: (name, timeoutMs) => void k.WaitNamedPipeW(ptr(wide(name)), timeoutMs),
    serverOf(handle) {
      const pid = new Uint32Array(1);
      return k.GetNamedPipeServerProcessId(handle, ptr(pid)) === 0 ? undefined : pid[0];
    },
    close: (handle) => void k.CloseHandle(handle),
  };
}

/** Whether it is a name of a pipe on this machine. */
export const isPipeName = (text: string): boolean => /^\\\\\.\\pipe\\[^\\]/i.test(text);
