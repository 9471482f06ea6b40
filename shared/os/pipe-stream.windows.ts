import { dlopen, FFIType, type Pointer, ptr } from "bun:ffi";
import { systemLibrary, winError } from "./win32.windows.ts";

const symbols = {
  CreateEventW: { args: ["ptr", "i32", "i32", "ptr"], returns: FFIType.i64_fast },
  ReadFile: { args: ["i64", "ptr", "u32", "ptr", "ptr"], returns: "i32" },
  WriteFile: { args: ["i64", "ptr", "u32", "ptr", "ptr"], returns: "i32" },
  GetOverlappedResult: { args: ["i64", "ptr", "ptr", "i32"], returns: "i32" },
  WaitForMultipleObjects: { args: ["u32", "ptr", "i32", "u32"], returns: "u32" },
  CancelIoEx: { args: ["i64", "ptr"], returns: "i32" },
  CloseHandle: { args: ["i64"], returns: "i32" },
  GetLastError: { args: [], returns: "u32" },
} as const;

type Calls = ReturnType<typeof dlopen<typeof symbols>>["symbols"];

/** `OVERLAPPED`: status and length, offset, and the event at byte 24. */
const overlappedBytes = 32;
const eventAt = 24;

/** The state of a transfer: done with so many bytes, pending, or failed with an error of Windows. */
export type Transfer =
  | { readonly t: "done"; readonly bytes: number }
  | { readonly t: "pending" }
  | { readonly t: "failed"; readonly error: number };

/**
 * Reads from and writes to an open handle, one transfer of each kind at a time, and waits for either with a bound.
 * Windows uses the buffers between the calls, so they must not move; `close` ends that use.
 */
export class PipeStream implements Disposable {
  readonly #k: Calls;
  readonly #handle: number;
  readonly #reading: Direction;
  readonly #writing: Direction;

  /** @param handle opened for overlapped transfers; closed with the stream */
  constructor(handle: number) {
    this.#k = dlopen(systemLibrary("kernel32.dll"), symbols).symbols;
    this.#handle = handle;
    this.#reading = new Direction(this.#k, handle, this.#k.ReadFile);
    this.#writing = new Direction(this.#k, handle, this.#k.WriteFile);
  }

  /** Continues a pending transfer, or begins one into the buffer. */
  read(buffer: Uint8Array): Transfer {
    return this.#reading.step(buffer);
  }

  /** The same for writing; while it is pending the bytes of the call that began it count. */
  write(bytes: Uint8Array): Transfer {
    return this.#writing.step(this.#writing.pending ? bytes : pinned(bytes));
  }

  /** Waits until a pending transfer has ended, or the time is over. */
  wait(timeoutMs: number): void {
    const events = [this.#reading, this.#writing].filter(({ pending }) => pending).map(({ event }) => BigInt(event));
    const list = new BigUint64Array(events);
    this.#k.WaitForMultipleObjects(list.length, ptr(list), 0, timeoutMs);
  }

  [Symbol.dispose](): void {
    this.#k.CancelIoEx(this.#handle, null);
    this.#reading.end();
    this.#writing.end();
    this.#k.CloseHandle(this.#handle);
  }
}

type Transferring = (handle: number, buffer: Pointer, bytes: number, done: null, overlapped: Pointer) => number;

class Direction {
  readonly event: number;
  readonly #k: Calls;
  readonly #handle: number;
  readonly #call: Transferring;
  readonly #overlapped = new DataView(new ArrayBuffer(overlappedBytes));
  readonly #done = new Uint32Array(new ArrayBuffer(4));
  /** The buffer that Windows uses, referenced here so that it is not collected meanwhile. */
  #buffer: Uint8Array | undefined;

  constructor(k: Calls, handle: number, call: Transferring) {
    this.#k = k;
    this.#handle = handle;
    this.#call = call;
    // A manual-reset event, as GetOverlappedResult requires.
    this.event = Number(k.CreateEventW(null, 1, 0, null));
    this.#overlapped.setBigUint64(eventAt, BigInt(this.event), true);
  }

  get pending(): boolean {
    return this.#buffer !== undefined;
  }

  step(buffer: Uint8Array): Transfer {
    if (!this.pending) {
      const begun = this.#call(this.#handle, ptr(buffer), buffer.length, null, ptr(this.#overlapped));
      const error = begun === 0 ? this.#k.GetLastError() : 0;
      if (begun === 0 && error !== winError.ioPending) return { t: "failed", error };
      this.#buffer = buffer;
    }
    return this.#result(false);
  }

  /** A cancelled transfer has to end before its buffer may be freed. */
  end(): void {
    if (this.pending) this.#result(true);
    this.#k.CloseHandle(this.event);
  }

  #result(wait: boolean): Transfer {
    const { GetOverlappedResult, GetLastError } = this.#k;
    const got = GetOverlappedResult(this.#handle, ptr(this.#overlapped), ptr(this.#done), wait ? 1 : 0);
    const error = got === 0 ? GetLastError() : 0;
    if (error === winError.ioIncomplete) return { t: "pending" };
    this.#buffer = undefined;
    return got === 0 ? { t: "failed", error } : { t: "done", bytes: this.#done[0] ?? 0 };
  }
}

/** A copy that does not move: a small plain `Uint8Array` moves when its `buffer` is first accessed. */
function pinned(bytes: Uint8Array): Uint8Array {
  const copy = new Uint8Array(new ArrayBuffer(bytes.length));
  copy.set(bytes);
  return copy;
}
