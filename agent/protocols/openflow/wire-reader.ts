import { MalformedMessage } from "./openflow-error.ts";

const utf8 = new TextDecoder();

/**
 * Reads numbers, highest byte first, and nothing beyond the end. Every method throws `MalformedMessage` there. Parts of
 * it share its bytes: a list of ten thousand flows has a hundred thousand of them.
 */
export class WireReader {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  /** What is read, for the error: `flow statistics`. */
  readonly #what: string;
  readonly #end: number;
  #at: number;

  constructor(bytes: Uint8Array, what: string, view?: DataView, from = 0, end = bytes.length) {
    this.#bytes = bytes;
    this.#view = view ?? new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#what = what;
    this.#at = from;
    this.#end = end;
  }

  get left(): number {
    return this.#end - this.#at;
  }

  u8(): number {
    return this.#view.getUint8(this.#take(1));
  }

  u16(): number {
    return this.#view.getUint16(this.#take(2));
  }

  u32(): number {
    return this.#view.getUint32(this.#take(4));
  }

  /** The next number, which stays to be read. */
  peekU32(): number {
    const value = this.u32();
    this.#at -= 4;
    return value;
  }

  u64(): bigint {
    return this.#view.getBigUint64(this.#take(8));
  }

  /** An unsigned number of any length. */
  uint(length: number): bigint {
    const at = this.#take(length);
    switch (length) {
      case 1:
        return BigInt(this.#view.getUint8(at));
      case 2:
        return BigInt(this.#view.getUint16(at));
      case 4:
        return BigInt(this.#view.getUint32(at));
      case 6:
        return BigInt(this.#view.getUint16(at) * 0x1_0000_0000 + this.#view.getUint32(at + 2));
      case 8:
        return this.#view.getBigUint64(at);
    }
    let value = 0n;
    for (let i = at; i < at + length; i++) value = (value << 8n) | BigInt(this.#bytes[i] ?? 0);
    return value;
  }

  /** A view into what is read, not a copy. */
  bytes(length: number): Uint8Array {
    const at = this.#take(length);
    return this.#bytes.subarray(at, at + length);
  }

  /** Text in a field of fixed length, up to its first zero byte. */
  text(length: number): string {
    const bytes = this.bytes(length);
    const zero = bytes.indexOf(0);
    return utf8.decode(zero < 0 ? bytes : bytes.subarray(0, zero));
  }

  skip(length: number): this {
    this.#take(length);
    return this;
  }

  /** Skips the padding behind `length` bytes; a final structure may come without it. */
  skipPadding(length: number): this {
    this.#at += Math.min(this.left, (8 - (length % 8)) % 8);
    return this;
  }

  /** The next `length` bytes as something of their own. */
  part(length: number, what = this.#what): WireReader {
    const at = this.#take(length);
    return new WireReader(this.#bytes, what, this.#view, at, at + length);
  }

  /** The same, but they stay to be read. */
  ahead(length: number, what = this.#what): WireReader {
    const part = this.part(length, what);
    this.#at -= length;
    return part;
  }

  /** All that is left. */
  rest(): Uint8Array {
    return this.bytes(this.left);
  }

  malformed(is: string): MalformedMessage {
    return new MalformedMessage(this.#what, is);
  }

  #take(length: number): number {
    const at = this.#at;
    if (length > this.left) throw this.malformed(`${this.left} bytes are left, wanted ${length}`);
    this.#at = at + length;
    return at;
  }
}

/** Type, length, body, and padding that the length does not count. @throws {MalformedMessage} */
export function* readProperties(reader: WireReader): Generator<{ readonly code: number; readonly body: WireReader }> {
  while (reader.left > 0) {
    const code = reader.u16();
    const length = reader.u16();
    if (length < 4) throw reader.malformed(`a property says ${length} bytes, wanted 4 at least`);
    const body = reader.part(length - 4, "a property");
    reader.skipPadding(length);
    yield { code, body };
  }
}
