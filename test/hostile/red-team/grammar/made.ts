import type { Hex } from "../parse.ts";

/** Bytes, and what they are in words. */
export interface Made {
  readonly bytes: Uint8Array;
  readonly words: string;
}

/** Of hex digits. */
export function raw(hex: Hex): Uint8Array {
  const made = new Uint8Array(hex.length / 2);
  for (let i = 0; i < made.length; i++) made[i] = Number.parseInt(hex.slice(2 * i, 2 * i + 2), 16);
  return made;
}

/** One after the other. Of all parts of the grammar the one that is called most. */
export function joined(...parts: readonly (Uint8Array | readonly number[])[]): Uint8Array {
  const made = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    made.set(part, at);
    at += part.length;
  }
  return made;
}

/** As many bytes, cut off or filled up with zeros. */
export function sized(bytes: Uint8Array, length: number): Uint8Array {
  const made = new Uint8Array(length);
  made.set(bytes.subarray(0, length));
  return made;
}
