import { createHuffmanTables, type HuffmanTables, huffmanDecode } from "./huffman.ts";

/** Header compression for HTTP/2 (RFC 7541). Names and values are strings of one character per byte. */
export type Header = readonly [name: string, value: string];

/** A header block that is not one, or that would grow beyond its bound. The connection cannot go on. */
export class HpackError extends Error {
  override readonly name = "HpackError";
}

/** Appendix A, entries 1 to 61: a name, and behind the first blank a value. */
const staticEntries =
  ":authority|:method GET|:method POST|:path /|:path /index.html|:scheme http|:scheme https|:status 200|:status 204|" +
  ":status 206|:status 304|:status 400|:status 404|:status 500|accept-charset|accept-encoding gzip, deflate|" +
  "accept-language|accept-ranges|accept|access-control-allow-origin|age|allow|authorization|cache-control|" +
  "content-disposition|content-encoding|content-language|content-length|content-location|content-range|content-type|" +
  "cookie|date|etag|expect|expires|from|host|if-match|if-modified-since|if-none-match|if-range|if-unmodified-since|" +
  "last-modified|link|location|max-forwards|proxy-authenticate|proxy-authorization|range|referer|refresh|retry-after|" +
  "server|set-cookie|strict-transport-security|transfer-encoding|user-agent|vary|via|www-authenticate";

/** The size of an entry, in the table and in a list (sections 4.1; RFC 9113, 6.5.2). */
const sizeOf = (header: Header): number => header[0].length + header[1].length + 32;

/**
 * Writes a block of literals that use no table, so neither side has to look anything up. The caller passes only
 * printable ASCII.
 */
export function encodeHeaders(headers: readonly Header[]): Uint8Array {
  let most = 0;
  for (const [name, value] of headers) most += name.length + value.length + 1 + 2 * longestInteger;
  const block = new Uint8Array(most);
  let at = 0;
  for (const [name, value] of headers) {
    // A literal without indexing whose name is written out: a zero byte (section 6.2.2).
    at = writeString(block, at + 1, name);
    at = writeString(block, at, value);
  }
  return block.subarray(0, at);
}

/** The prefix and four more bytes: 28 bits. */
const longestInteger = 5;

function writeString(block: Uint8Array, from: number, text: string): number {
  let at = from;
  let rest = text.length - 127;
  block[at++] = Math.min(text.length, 127);
  for (; rest >= 0; rest = rest < 128 ? -1 : rest >> 7) block[at++] = rest < 128 ? rest : (rest & 127) | 128;
  // Not a loop over the characters: that would start the JIT, which costs a plugin a millisecond.
  new TextEncoder().encodeInto(text, block.subarray(at));
  return at + text.length;
}

/** Reads the blocks of one connection, in order: each may change the table for the next. */
export class HpackDecoder {
  #static: readonly string[] | undefined;
  readonly #maxTableBytes: number;
  readonly #maxListBytes: number;
  /** Newest first. */
  #dynamic: Header[] = [];
  #dynamicBytes = 0;
  #tableBytes: number;
  #huffman: HuffmanTables | undefined;
  #block: Uint8Array = new Uint8Array(0);
  #at = 0;

  /**
   * @param tableBytes the SETTINGS_HEADER_TABLE_SIZE that the peer was told
   * @param listBytes bound for a decoded block, since a few bytes can repeat a long entry many times
   */
  constructor(tableBytes: number, listBytes: number) {
    this.#maxTableBytes = tableBytes;
    this.#tableBytes = tableBytes;
    this.#maxListBytes = listBytes;
  }

  /** @throws {HpackError} for a block that breaks the format or the bound; the decoder is of no use then */
  decode(block: Uint8Array): Header[] {
    this.#block = block;
    this.#at = 0;
    const headers: Header[] = [];
    let bytes = 0;
    while (this.#at < block.length) {
      const header = this.#next(headers.length === 0);
      if (header === undefined) continue;
      bytes += sizeOf(header);
      if (bytes > this.#maxListBytes) throw new HpackError(`the headers are longer than ${this.#maxListBytes} bytes`);
      headers.push(header);
    }
    return headers;
  }

  /** One representation (section 6); `undefined` for a size update. */
  #next(first: boolean): Header | undefined {
    const byte = this.#block[this.#at] ?? 0;
    if (byte & 0x80) return this.#entry(this.#integer(7));
    if (byte & 0x40) return this.#insert(this.#literal(6));
    if (byte & 0x20) {
      if (!first) throw new HpackError("a table size update follows a header, wanted it at the beginning");
      this.#resize(this.#integer(5));
      return undefined;
    }
    return this.#literal(4);
  }

  #literal(prefixBits: number): Header {
    const index = this.#integer(prefixBits);
    const name = index === 0 ? this.#string() : this.#entry(index)[0];
    return [name, this.#string()];
  }

  #entry(index: number): Header {
    this.#static ??= staticEntries.split("|");
    const text = this.#static[index - 1];
    if (text !== undefined) {
      const blank = text.indexOf(" ");
      return blank < 0 ? [text, ""] : [text.slice(0, blank), text.slice(blank + 1)];
    }
    const entry = this.#dynamic[index - 1 - this.#static.length];
    if (entry === undefined) throw new HpackError(`entry ${index} is not in the tables`);
    return entry;
  }

  #insert(header: Header): Header {
    this.#dynamic.unshift(header);
    this.#dynamicBytes += sizeOf(header);
    this.#evict();
    return header;
  }

  #resize(bytes: number): void {
    if (bytes > this.#maxTableBytes)
      throw new HpackError(`the table's new size is ${bytes} bytes, wanted at most ${this.#maxTableBytes}`);
    this.#tableBytes = bytes;
    this.#evict();
  }

  /** An entry larger than the table empties it, which is no error (section 4.4). */
  #evict(): void {
    while (this.#dynamicBytes > this.#tableBytes) {
      const oldest = this.#dynamic.pop();
      if (oldest === undefined) return;
      this.#dynamicBytes -= sizeOf(oldest);
    }
  }

  #byte(): number {
    const byte = this.#block[this.#at++];
    if (byte === undefined) throw new HpackError("the header block ends inside a header");
    return byte;
  }

  #integer(prefixBits: number): number {
    const most = 2 ** prefixBits - 1;
    let value = this.#byte() & most;
    if (value < most) return value;
    for (let shift = 0; shift < 28; shift += 7) {
      const byte = this.#byte();
      value += (byte & 127) << shift;
      if (byte < 128) return value;
    }
    throw new HpackError("a number is beyond 2^28");
  }

  #string(): string {
    const huffman = ((this.#block[this.#at] ?? 0) & 0x80) !== 0;
    const length = this.#integer(7);
    const end = this.#at + length;
    if (end > this.#block.length)
      throw new HpackError(`a string has ${length} bytes, wanted at most ${this.#block.length - this.#at}`);
    const bytes = this.#block.subarray(this.#at, end);
    this.#at = end;
    if (huffman) {
      this.#huffman ??= createHuffmanTables();
      const text = huffmanDecode(this.#huffman, bytes);
      if (text === undefined) throw new HpackError("a string is not in the Huffman code");
      return text;
    }
    let text = "";
    for (let i = 0; i < bytes.length; i++) text += String.fromCharCode(bytes[i] ?? 0);
    return text;
  }
}
