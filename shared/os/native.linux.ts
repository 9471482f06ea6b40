import type { ConvertFns, FFIFunction, Pointer, ptr as Ptr, read as Read } from "bun:ffi";

/** The part of Bun that its module `bun:ffi` uses. */
interface Native {
  /** Returns an `Error` on failure. */
  dlopen<Symbols extends Record<string, FFIFunction>>(
    name: string,
    symbols: Symbols,
  ): { readonly symbols: ConvertFns<Symbols> } | Error;
  readonly read: typeof Read;
  readonly ptr: typeof Ptr;
}

// Importing `bun:ffi` evaluates all of that module: 0.2 ms and an eighth of the memory that a plugin's start needs.
const native: Native | undefined = Reflect.get(Bun, "FFI");

/**
 * Functions of a C library; `undefined` where the system forbids memory that is both writable and executable, because
 * Bun's FFI needs its JIT.
 */
export function openLibrary<Symbols extends Record<string, FFIFunction>>(
  name: string,
  symbols: Symbols,
): ConvertFns<Symbols> | undefined {
  try {
    const library = native?.dlopen(name, symbols);
    return library === undefined || library instanceof Error ? undefined : library.symbols;
  } catch {
    return undefined;
  }
}

/** Memory that stays where it is, for a call that is made often: to find out where an array lies costs as much as a call. */
export interface Room {
  readonly buffer: ArrayBuffer;
  readonly address: Pointer;
}

/** `undefined` as for `openLibrary`. */
export function openRoom(bytes: number): Room | undefined {
  const buffer = new ArrayBuffer(bytes);
  return native === undefined ? undefined : { buffer, address: native.ptr(new Uint8Array(buffer)) };
}

/** The `int` at an address that a C function returned. */
export const intAt = (address: Parameters<typeof Read.i32>[0] | null): number =>
  native === undefined || address === null ? 0 : native.read.i32(address, 0);
