import { dlopen, ptr } from "bun:ffi";
import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { openDescriptors } from "./descriptor.windows.ts";
import { systemLibrary, wide, winError } from "./win32.windows.ts";

const symbols = {
  CreateDirectoryW: { args: ["ptr", "ptr"], returns: "i32" },
  GetLastError: { args: [], returns: "u32" },
} as const;

/** Everything for LocalSystem and the administrators, in the directory and in what is made there; nobody else. */
export const administratorsOnlyInside = "D:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)";

/**
 * Makes a directory that is the administrators' from its first moment on: below ProgramData every user may read what
 * others make, and add to it. Directories above it are made as Windows makes them; one that is there stays as it is.
 * @throws {Error} naming the call of Windows and its error
 */
export function makeAdministratorsDirectory(path: string): void {
  const k = dlopen(systemLibrary("kernel32.dll"), symbols).symbols;
  mkdirSync(dirname(path), { recursive: true });
  using descriptor = openDescriptors().parse(administratorsOnlyInside);
  if (k.CreateDirectoryW(ptr(wide(path)), ptr(descriptor.attributes())) !== 0) return;
  const error = k.GetLastError();
  if (error !== winError.alreadyExists) throw new Error(`CreateDirectory answers error ${error}`);
}
