import type { Hex } from "../parse.ts";

/** Bytes, and what they are in words. */
export interface Made {
  readonly bytes: Uint8Array;
  readonly words: string;
}

export const raw = (hex: Hex): Uint8Array => Uint8Array.from(Buffer.from(hex, "hex"));

export const joined = (...parts: readonly (Uint8Array | readonly number[])[]): Uint8Array =>
  Uint8Array.from(Buffer.concat(parts.map((part) => (part instanceof Uint8Array ? part : Uint8Array.from(part)))));

/** As many bytes, cut off or filled up with zeros. */
export function sized(bytes: Uint8Array, length: number): Uint8Array {
  const made = new Uint8Array(length);
  made.set(bytes.subarray(0, length));
  return made;
}
