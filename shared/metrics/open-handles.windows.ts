import { dlopen, ptr } from "bun:ffi";
import { systemLibrary } from "../os/win32.windows.ts";

const symbols = {
  // The pseudo handle of this process.
  GetCurrentProcess: { args: [], returns: "i64" },
  GetProcessHandleCount: { args: ["i64", "ptr"], returns: "i32" },
} as const;

let opened: ReturnType<typeof dlopen<typeof symbols>> | undefined;

/** Handles that this process has open; `undefined` where the system does not tell. */
export function openHandles(): number | undefined {
  opened ??= dlopen(systemLibrary("kernel32.dll"), symbols);
  const { GetCurrentProcess, GetProcessHandleCount } = opened.symbols;
  const count = new Uint32Array(1);
  return GetProcessHandleCount(GetCurrentProcess(), ptr(count)) === 0 ? undefined : count[0];
}
