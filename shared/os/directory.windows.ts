import { dlopen, ptr } from "bun:ffi";
import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { openDescriptors } from "./descriptor.windows.ts";
import { systemLibrary, wide, winError } from "./win32.windows.ts";

const symbols = {
  CreateDirectoryW: { args: ["ptr", "ptr"], returns: "i32" },
  GetLastError: { args: [], returns: "u32" },
} as const;

/**
 * Full access for LocalSystem and the administrators, for the directory and everything created in it; none for others.
 */
export const administratorsOnlyInside = "D:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)";

/**
 * Creates a directory with these rights from its creation on, because below ProgramData every user may read and add
 * files by default. Parent directories get the default rights; an existing directory stays as it is.
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
