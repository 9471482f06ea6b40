/** One JSON object as text, or why there will be no more of them. */
export type JsonPiece = { readonly t: "text"; readonly text: string } | { readonly t: "fault"; readonly is: string };

/** One message either way. The first state of a bridge with 10,000 ports, all columns that we know, has some 10 MB. */
export const maxMessageBytes = 32 * 1024 * 1024;
/** Brackets within brackets: RFC 7047 needs about ten. */
const maxDepth = 64;

const nothing = new Uint8Array(0);
const firstRoomBytes = 4096;

const byte = { quote: 0x22, backslash: 0x5c, openBrace: 0x7b, closeBrace: 0x7d, openBracket: 0x5b, closeBracket: 0x5d };

/**
 * Cuts a stream into JSON objects, which stand in it back to back without length or delimiter (RFC 7047, section 4).
 * It follows strings and depth only; whether the text between is JSON is its reader's to find out. At most one
 * object that has not come whole is held.
 */
export class JsonSplitter {
  readonly #maxBytes: number;
  readonly #decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  #chunk: Uint8Array = nothing;
  #at = 0;
  /** The beginning of an object that came in an earlier chunk, and how much of the room it takes. */
  #held: Uint8Array = nothing;
  #heldBytes = 0;
  #depth = 0;
  #inString = false;
  #escaped = false;
  #fault: string | undefined;

  constructor(maxBytes: number = maxMessageBytes) {
    this.#maxBytes = maxBytes;
  }

  /** Bytes of an object that has not come whole. */
  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** The next bytes, to be read by `next` until there is no more. */
  push(chunk: Uint8Array): void {
    this.#chunk = chunk;
    this.#at = 0;
  }

  /** The next whole object; `undefined` for now; after a fault the same fault. */
  next(): JsonPiece | undefined {
    if (this.#fault !== undefined) return { t: "fault", is: this.#fault };
    if (this.#depth === 0) this.#skipSpace();
    const start = this.#at;
    const end = this.#scan();
    if (this.#fault !== undefined) return this.#fail(this.#fault);
    const part = this.#chunk.subarray(start, this.#at);
    if (this.#heldBytes + part.length > this.#maxBytes)
      return this.#fail(`a message is longer than ${this.#maxBytes} bytes`);
    if (!end) {
      this.#hold(part);
      this.push(nothing); // Not kept: it may be much larger than what is held of it.
      return undefined;
    }
    return this.#text(part);
  }

  #text(part: Uint8Array): JsonPiece {
    let whole = part;
    if (this.#heldBytes > 0) {
      this.#hold(part);
      whole = this.#held.subarray(0, this.#heldBytes);
    }
    this.#held = nothing;
    this.#heldBytes = 0;
    try {
      return { t: "text", text: this.#decoder.decode(whole) };
    } catch {
      return this.#fail("a message is not UTF-8");
    }
  }

  #fail(is: string): JsonPiece {
    this.#fault = is;
    this.#held = nothing;
    this.#heldBytes = 0;
    this.push(nothing);
    return { t: "fault", is };
  }

  #skipSpace(): void {
    const isSpace = (value: number | undefined) => value === 0x20 || value === 0x0a || value === 0x0d || value === 0x09;
    while (isSpace(this.#chunk[this.#at])) this.#at++;
    const first = this.#chunk[this.#at];
    if (first !== undefined && first !== byte.openBrace)
      this.#fault = `a message begins with the byte 0x${first.toString(16).padStart(2, "0")}`;
  }

  /** Goes on to behind the object's end (`true`) or to the end of the chunk. */
  #scan(): boolean {
    const chunk = this.#chunk;
    for (; this.#fault === undefined && this.#at < chunk.length; this.#at++) {
      const value = chunk[this.#at];
      if (this.#inString) {
        if (this.#escaped) this.#escaped = false;
        else if (value === byte.backslash) this.#escaped = true;
        else if (value === byte.quote) this.#inString = false;
      } else if (value === byte.quote) this.#inString = true;
      else if (value === byte.openBrace || value === byte.openBracket) {
        if (++this.#depth > maxDepth) this.#fault = `a message is nested more than ${maxDepth} deep`;
      } else if ((value === byte.closeBrace || value === byte.closeBracket) && --this.#depth === 0) {
        this.#at++;
        return true;
      }
    }
    return false;
  }

  #hold(part: Uint8Array): void {
    const bytes = this.#heldBytes + part.length;
    if (bytes > this.#held.length) {
      const room = new Uint8Array(Math.min(Math.max(2 * this.#held.length, bytes, firstRoomBytes), this.#maxBytes));
      room.set(this.#held.subarray(0, this.#heldBytes));
      this.#held = room;
    }
    this.#held.set(part, this.#heldBytes);
    this.#heldBytes = bytes;
  }
}
