import { type HuffmanTables, huffmanDecode, huffmanEncode } from "../rpc/huffman.ts";

/** `:authority` in HPACK's static table (RFC 7541, appendix A). */
const authorityIndex = 1;
const authorityName = ":authority";

/**
 * Replaces, in place, what an HTTP/2 server refuses in literal values of `:authority`. The block may be
 * anything: what cannot be read stays as it is, from there to its end.
 */
export function rewriteAuthority(block: Uint8Array, huffman: HuffmanTables): void {
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

/** `undefined` for a string that is not whole, or not in the code that it claims. */
function textOf(string: HpackString | undefined, huffman: HuffmanTables): string | undefined {
  if (string?.huffman) return huffmanDecode(huffman, string.bytes);
  return string === undefined ? undefined : String.fromCharCode(...string.bytes);
}

/** Refused by HTTP/2 servers, and an accepted character whose Huffman code is as long. */
const replacements: Readonly<Record<string, string>> = { "/": "-", " ": "-", "?": "!", "@": "$", "|": "+" };

/** Refused as well, and there is none of the same length: replaced where each character is one byte as it is. */
const isRefused = (character: string): boolean => character === "#" || character === "\\" || character > "~";

function rewriteValue(value: HpackString, huffman: HuffmanTables): void {
  let better = "";
  for (const character of textOf(value, huffman) ?? "")
    better += replacements[character] ?? (!value.huffman && isRefused(character) ? "-" : character);
  const bytes = value.huffman ? huffmanEncode(huffman, better) : Uint8Array.from(better, (c) => c.charCodeAt(0));
  value.bytes.set(bytes);
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
