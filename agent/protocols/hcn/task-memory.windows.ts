import { dlopen, type Pointer, toArrayBuffer } from "bun:ffi";
import { systemLibrary } from "../../../shared/os/win32.windows.ts";

/** Room for one address that a function writes: of a text, or of an object. */
export class Answer {
  // A buffer of its own keeps its address.
  readonly place = new BigUint64Array(new ArrayBuffer(8));

  /** 0 where nothing was written. */
  get address(): number {
    return Number(this.place[0]);
  }
}

/** Texts that a library leaves to its caller (learn.microsoft.com/windows/win32/api/combaseapi/nf-combaseapi-cotaskmemfree). */
export interface TaskMemory {
  /** Reads a UTF-16 text and frees it; empty where there is none. */
  takeText(answer: Answer): string;
}

export function openTaskMemory(): TaskMemory {
  const { CoTaskMemFree } = dlopen(systemLibrary("ole32.dll"), {
    CoTaskMemFree: { args: ["ptr"], returns: "void" },
  }).symbols;
  const { lstrlenW } = dlopen(systemLibrary("kernel32.dll"), { lstrlenW: { args: ["ptr"], returns: "i32" } }).symbols;
  const decoder = new TextDecoder("utf-16le", { ignoreBOM: true });
  return {
    takeText(answer) {
      if (answer.address === 0) return "";
      const address = answer.address as Pointer;
      // Only once: a second look finds nothing.
      answer.place[0] = 0n;
      const units = lstrlenW(address);
      // A view of that memory, so it is read before it is freed.
      const text = units === 0 ? "" : decoder.decode(toArrayBuffer(address, 0, 2 * units));
      CoTaskMemFree(address);
      return text;
    },
  };
}
