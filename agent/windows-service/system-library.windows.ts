import { dlopen, type FFIFunction } from "bun:ffi";

/** Where Windows keeps its own libraries: by full path, so that no file of the same name elsewhere is taken for one. */
export const systemLibrary = (name: string): string =>
  `${process.env["SystemRoot"] ?? "C:\\Windows"}\\System32\\${name}`;

/** A library of the system with these functions. @throws where it lacks one of them */
export const openSystemLibrary = <const F extends Record<string, FFIFunction>>(name: string, functions: F) =>
  dlopen(systemLibrary(name), functions).symbols;

/** Text as Windows takes it: UTF-16 with a final zero, at an address that stays while the value is held. */
export function wide(text: string): Uint8Array<ArrayBuffer> {
  const from = Buffer.from(`${text}\0`, "utf16le");
  // A buffer of its own: a small array from the pool would move.
  const pinned = new Uint8Array(new ArrayBuffer(from.length));
  pinned.set(from);
  return pinned;
}
