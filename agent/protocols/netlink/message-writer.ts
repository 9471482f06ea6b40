import type { Ip } from "../../../shared/net/ip.ts";
import { ipBytes } from "./bytes.ts";

/** One request before it is numbered and framed. */
export interface Message {
  /** Continues "Cannot …" in the error: `create "web-1a2b3c"`. */
  readonly action: string;
  readonly type: number;
  /** Beside REQUEST, and ACK, which the socket sets. */
  readonly flags?: number;
  /** Writes the fixed header of the message's family, then attributes. */
  readonly body: (writer: MessageWriter) => void;
}

const alignment = 4;
const encoder = new TextEncoder();

/** Frames netlink messages one behind the other into one buffer; nothing is ever written beyond its end. */
export class MessageWriter {
  readonly #kept: Uint8Array<ArrayBuffer>;
  #bytes: Uint8Array<ArrayBuffer>;
  #view: DataView;
  #length = 0;
  #mostBytes: number;

  constructor(bytes: Uint8Array<ArrayBuffer>) {
    this.#kept = bytes;
    this.#bytes = bytes;
    this.#view = viewOf(bytes);
    this.#mostBytes = bytes.length;
  }

  get length(): number {
    return this.#length;
  }

  /** What was written lies in here: in the given buffer, or in a larger one where that was too small. */
  get bytes(): Uint8Array<ArrayBuffer> {
    return this.#bytes;
  }

  /** @param mostBytes up to which a larger buffer may be taken instead of the given one */
  reset(mostBytes = this.#kept.length): void {
    this.#length = 0;
    this.#mostBytes = mostBytes;
    if (this.#bytes === this.#kept) return;
    this.#bytes = this.#kept;
    this.#view = viewOf(this.#kept);
  }

  /** Appends one message (struct nlmsghdr and what `body` writes). */
  message(type: number, flags: number, sequence: number, body: (writer: MessageWriter) => void): void {
    const start = this.#length;
    this.u32(0).u16(type).u16(flags).u32(sequence).u32(0);
    body(this);
    this.#view.setUint32(start, this.#length - start, true);
    this.#pad();
  }

  u8(value: number): this {
    const at = this.#take(1);
    this.#view.setUint8(at, value);
    return this;
  }

  u16(value: number): this {
    const at = this.#take(2);
    this.#view.setUint16(at, value, true);
    return this;
  }

  u32(value: number): this {
    const at = this.#take(4);
    this.#view.setUint32(at, value, true);
    return this;
  }

  attrU32(type: number, value: number): this {
    return this.#attr(type, () => this.u32(value));
  }

  /** Highest byte first, as nftables has its numbers. */
  attrU32Net(type: number, value: number): this {
    return this.#attr(type, () => {
      const at = this.#take(4);
      this.#view.setUint32(at, value);
    });
  }

  attrU16(type: number, value: number): this {
    return this.#attr(type, () => this.u16(value));
  }

  attrU8(type: number, value: number): this {
    return this.#attr(type, () => this.u8(value));
  }

  attrBytes(type: number, value: Uint8Array): this {
    return this.#attr(type, () => this.#append(value));
  }

  /** Ends with a zero byte, as the kernel's NLA_NUL_STRING wants it. */
  attrText(type: number, value: string): this {
    return this.#attr(type, () => {
      this.#append(encoder.encode(value));
      this.u8(0);
    });
  }

  attrIp(type: number, ip: Ip): this {
    return this.attrBytes(type, ipBytes(ip));
  }

  /** An attribute that holds attributes, or a fixed header with attributes (VETH_INFO_PEER). */
  nest(type: number, body: () => void): this {
    return this.#attr(type | 0x8000, body);
  }

  #attr(type: number, body: () => void): this {
    const start = this.#length;
    this.u16(0).u16(type);
    body();
    const length = this.#length - start;
    if (length > 0xffff) throw new Error(`Broken invariant: a netlink attribute has ${length} bytes`);
    this.#view.setUint16(start, length, true);
    this.#pad();
    return this;
  }

  #append(value: Uint8Array): void {
    const at = this.#take(value.length);
    this.#bytes.set(value, at);
  }

  #pad(): void {
    while (this.#length % alignment !== 0) this.u8(0);
  }

  #take(count: number): number {
    const at = this.#length;
    if (at + count > this.#bytes.length) this.#grow(at + count);
    this.#length = at + count;
    return at;
  }

  #grow(wanted: number): void {
    if (wanted > this.#mostBytes)
      throw new Error(`Broken invariant: a netlink request is longer than ${this.#mostBytes} bytes`);
    const grown = new Uint8Array(new ArrayBuffer(Math.min(this.#mostBytes, Math.max(wanted, 2 * this.#bytes.length))));
    grown.set(this.#bytes.subarray(0, this.#length));
    this.#bytes = grown;
    this.#view = viewOf(grown);
  }
}

const viewOf = (bytes: Uint8Array<ArrayBuffer>): DataView =>
  new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
