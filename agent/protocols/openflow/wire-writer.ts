import { InvalidFlow } from "./openflow-error.ts";

const tooWide = (value: number | bigint, bits: number): InvalidFlow =>
  new InvalidFlow("a message", `the number ${value} is in it, wanted ${bits} bits`);

/** Writes numbers, highest byte first, into a buffer that grows, and never a number cut to its lowest bits. Room is taken first, since that may be another buffer. */
export class WireWriter {
  #bytes: Uint8Array<ArrayBuffer>;
  #view: DataView;
  #length = 0;

  constructor(room = 512) {
    this.#bytes = new Uint8Array(new ArrayBuffer(room));
    this.#view = new DataView(this.#bytes.buffer);
  }

  get length(): number {
    return this.#length;
  }

  u8(value: number): this {
    if ((value & 0xff) !== value) throw tooWide(value, 8);
    const at = this.#take(1);
    this.#view.setUint8(at, value);
    return this;
  }

  u16(value: number): this {
    if ((value & 0xffff) !== value) throw tooWide(value, 16);
    const at = this.#take(2);
    this.#view.setUint16(at, value);
    return this;
  }

  u32(value: number): this {
    if (value >>> 0 !== value) throw tooWide(value, 32);
    const at = this.#take(4);
    this.#view.setUint32(at, value);
    return this;
  }

  u64(value: bigint): this {
    if (value < 0n || value > 0xffff_ffff_ffff_ffffn) throw tooWide(value, 64);
    const at = this.#take(8);
    this.#view.setBigUint64(at, value);
    return this;
  }

  /** An unsigned number of 1, 2, 4, 6, 8 or 16 bytes, or of any other length. */
  uint(value: bigint, length: number): this {
    switch (length) {
      case 1:
        return this.u8(Number(value));
      case 2:
        return this.u16(Number(value));
      case 4:
        return this.u32(Number(value));
      case 6: {
        const number = Number(value);
        return this.u16(Math.floor(number / 0x1_0000_0000)).u32(number % 0x1_0000_0000);
      }
      case 8:
        return this.u64(value);
      case 16:
        return this.u64(value >> 64n).u64(value & 0xffff_ffff_ffff_ffffn);
    }
    const at = this.#take(length);
    let rest = value;
    for (let i = at + length - 1; i >= at; i--) {
      this.#bytes[i] = Number(rest & 0xffn);
      rest >>= 8n;
    }
    if (rest !== 0n) throw tooWide(value, 8 * length);
    return this;
  }

  bytes(value: Uint8Array): this {
    const at = this.#take(value.length);
    this.#bytes.set(value, at);
    return this;
  }

  zeros(count: number): this {
    this.#take(count);
    return this;
  }

  /** Text in a field of fixed length, zeros behind it. */
  text(value: string, length: number): this {
    const at = this.#take(length);
    new TextEncoder().encodeInto(value, this.#bytes.subarray(at, at + length));
    return this;
  }

  /** Zeros until the length since `start` is a multiple of eight. */
  pad(start: number): this {
    return this.zeros((8 - ((this.#length - start) % 8)) % 8);
  }

  /** Forgets what was written behind `length`. */
  cut(length: number): void {
    this.#bytes.fill(0, length, this.#length);
    this.#length = length;
  }

  setU16(at: number, value: number): void {
    if (value > 0xffff) throw new InvalidFlow("a message", `a part of it has ${value} bytes, wanted 65535 at the most`);
    this.#view.setUint16(at, value);
  }

  /** What was written; a view that is valid until more is written. */
  done(): Uint8Array<ArrayBuffer> {
    return this.#bytes.subarray(0, this.#length);
  }

  #take(count: number): number {
    const at = this.#length;
    if (at + count > this.#bytes.length) this.#grow(at + count);
    this.#length = at + count;
    return at;
  }

  #grow(wanted: number): void {
    const larger = new Uint8Array(new ArrayBuffer(Math.max(wanted, this.#bytes.length * 2)));
    larger.set(this.#bytes.subarray(0, this.#length));
    this.#bytes = larger;
    this.#view = new DataView(larger.buffer);
  }
}

/** A property: type, length without the padding behind it, and what `content` writes. */
export function writeProperty(writer: WireWriter, type: number, content: () => void): void {
  const start = writer.length;
  writer.u16(type).u16(0);
  content();
  writer.setU16(start + 2, writer.length - start);
  writer.pad(start);
}
