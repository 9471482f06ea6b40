import type { HuffmanCode } from "../../shared/rpc/huffman.ts";

/** `:authority` in HPACK's static table (RFC 7541, appendix A). */
const authorityIndex = 1;
const authorityName = ":authority";

/**
 * Replaces, in place, what an HTTP/2 server refuses in literal values of `:authority`. The block may be
 * anything: what cannot be read stays as it is, from there to its end.
 */
export function rewriteAuthority(block: Uint8Array, huffman: HuffmanCode): void {
  const cursor = new Cursor(block);
  while (!cursor.ended()) {
    const byte = cursor.peek();
    // Section 6: an indexed field, a size update, or a literal of one of three kinds.
    if (byte & 0x80) {
      cursor.integer(7);
      continue;
    }
    if (!(byte & 0x40) && byte & 0x20) {
      cursor.integer(5);
      continue;
    }
    const index = cursor.integer(byte & 0x40 ? 6 : 4);
    const named = index === 0 ? textOf(cursor.string(), huffman) === authorityName : index === authorityIndex;
    const value = cursor.string();
    if (value === undefined) return;
    if (named) rewriteValue(value, huffman);
  }
}

interface HpackString {
  readonly huffman: boolean;
  readonly bytes: Uint8Array;
}

function textOf(string: HpackString | undefined, huffman: HuffmanCode): string {
  let text = "";
  const add = (symbol: number): void => {
    text += String.fromCharCode(symbol);
  };
  if (string?.huffman) huffman.walk(string.bytes, add);
  else string?.bytes.forEach(add);
  return text;
}

/** Refused by HTTP/2 servers, and an accepted character whose Huffman code is as long; the others have none. */
const replacements: ReadonlyMap<number, number> = new Map(
  (["/-", " -", "?!", "@$", "|+"] as const).map((pair) => [pair.charCodeAt(0), pair.charCodeAt(1)]),
);

const dash = 45;

function rewriteValue(value: HpackString, huffman: HuffmanCode): void {
  const { bytes } = value;
  if (!value.huffman) {
    // Every character is one byte here, so any of them will do.
    bytes.forEach((byte, i) => {
      if (isRefused(byte)) bytes[i] = replacements.get(byte) ?? dash;
    });
    return;
  }
  const edits: { readonly symbol: number; readonly atBit: number }[] = [];
  const valid = huffman.walk(bytes, (symbol, atBit) => {
    const better = replacements.get(symbol);
    if (better !== undefined) edits.push({ symbol: better, atBit });
  });
  if (!valid) return;
  for (const { symbol, atBit } of edits) {
    const { code, bits } = huffman.codeOf(symbol);
    for (let i = 0; i < bits; i++) writeBit(bytes, atBit + i, (code >> (bits - 1 - i)) & 1);
  }
}

const isRefused = (byte: number): boolean => byte >= 128 || replacements.has(byte) || byte === 35 || byte === 92;

function writeBit(bytes: Uint8Array, at: number, bit: number): void {
  const mask = 0x80 >> (at & 7);
  const byte = bytes[at >> 3] ?? 0;
  bytes[at >> 3] = bit === 1 ? byte | mask : byte & ~mask;
}

/** Reads integers and strings (section 5). Behind the end everything is absent. */
class Cursor {
  readonly #block: Uint8Array;
  #at = 0;

  constructor(block: Uint8Array) {
    this.#block = block;
  }

  ended(): boolean {
    return this.#at >= this.#block.length;
  }

  peek(): number {
    return this.#block[this.#at] ?? 0;
  }

  integer(prefixBits: number): number {
    const most = 2 ** prefixBits - 1;
    let value = (this.#block[this.#at++] ?? 0) & most;
    if (value < most) return value;
    for (let scale = 1; !this.ended(); scale *= 128) {
      const byte = this.#block[this.#at++] ?? 0;
      value += (byte & 127) * scale;
      if (byte < 128) break;
    }
    return value;
  }

  /** `undefined` where it is not whole in this block; nothing more is read then. */
  string(): HpackString | undefined {
    if (this.ended()) return undefined;
    const huffman = (this.peek() & 0x80) !== 0;
    const length = this.integer(7);
    const from = this.#at;
    this.#at = Math.min(from + length, this.#block.length);
    return from + length > this.#block.length ? undefined : { huffman, bytes: this.#block.subarray(from, this.#at) };
  }
}
