import { dlopen, type Pointer, ptr, read } from "bun:ffi";

/** The calls that Bun has no function for; nothing else goes through FFI. */
const symbols = {
  socket: { args: ["i32", "i32", "i32"], returns: "i32" },
  setsockopt: { args: ["i32", "i32", "i32", "ptr", "u32"], returns: "i32" },
  bind: { args: ["i32", "ptr", "u32"], returns: "i32" },
  connect: { args: ["i32", "ptr", "u32"], returns: "i32" },
  // Of their 64 bits the lower half: nobody here sends or reads as much as 2 GiB at once.
  send: { args: ["i32", "ptr", "usize", "i32"], returns: "i32" },
  recv: { args: ["i32", "ptr", "usize", "i32"], returns: "i32" },
  setns: { args: ["i32", "i32"], returns: "i32" },
  // The kernel takes 32 bits of the request.
  ioctl: { args: ["i32", "u32", "ptr"], returns: "i32" },
  open: { args: ["ptr", "i32", "i32"], returns: "i32" },
  write: { args: ["i32", "ptr", "usize"], returns: "i32" },
  statx: { args: ["i32", "ptr", "i32", "u32", "ptr"], returns: "i32" },
  close: { args: ["i32"], returns: "i32" },
  clock_gettime: { args: ["i32", "ptr"], returns: "i32" },
  __errno_location: { args: [], returns: "ptr" },
} as const;

/** The C library's view of one thread: all calls of one instance come from the thread that made it. */
export class Libc {
  readonly calls = dlopen("libc.so.6", symbols).symbols;
  readonly #errno: Pointer;

  constructor() {
    const at = this.calls.__errno_location();
    if (at === null || typeof at === "bigint") throw new Error("Broken invariant: the C library has no errno");
    this.#errno = at;
  }

  /** Of the call that just failed; anything in between may change it. */
  errno(): number {
    return read.i32(this.#errno, 0);
  }
}

/** A buffer whose address stays: a small plain `Uint8Array` moves when its `buffer` is first touched. */
export function pinned(size: number): { readonly bytes: Uint8Array<ArrayBuffer>; readonly address: Pointer } {
  const bytes = new Uint8Array(new ArrayBuffer(size));
  return { bytes, address: ptr(bytes) };
}

/** For one call: of a buffer made as `pinned` makes them. */
export const addressOf = (bytes: Uint8Array<ArrayBuffer>): Pointer => ptr(bytes);
