import type { Ip } from "../../../shared/net/ip.ts";
import { ipBytes } from "./bytes.ts";

/** One request before it is numbered and framed. */
export interface Message {
  /** Continues "Cannot …" in the error: `create "web-1a2b3c"`. A getter where it takes time to make. */
  readonly action: string;
  readonly type: number;
  /** Beside REQUEST, and ACK, which the socket sets. */
  readonly flags?: number;
  /** Writes the fixed header of the message's family, then attributes. */
  readonly body: (writer: MessageWriter) => void;
}

const alignment = 4;
/** struct nlmsghdr. */
const messageHeaderBytes = 16;
/** struct nlattr. */
const headerBytes = 4;
/** NLA_F_NESTED. */
const nested = 0x8000;
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
    const start = this.#take(messageHeaderBytes);
    this.#view.setUint32(start + 4, type | (flags << 16), true);
    this.#view.setUint32(start + 8, sequence, true);
    this.#view.setUint32(start + 12, 0);
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
    const at = this.#value(type, 4);
    this.#view.setUint32(at, value, true);
    return this;
  }

  /** Highest byte first, as nftables has its numbers. */
  attrU32Net(type: number, value: number): this {
    const at = this.#value(type, 4);
    this.#view.setUint32(at, value);
    return this;
  }

  attrU16(type: number, value: number): this {
    const at = this.#value(type, 2);
    this.#view.setUint16(at, value, true);
    return this;
  }

  attrU8(type: number, value: number): this {
    const at = this.#value(type, 1);
    this.#view.setUint8(at, value);
    return this;
  }

  attrBytes(type: number, value: Uint8Array): this {
    const at = this.#value(type, value.length);
    this.#bytes.set(value, at);
    return this;
  }

  /** Ends with a zero byte, as the kernel's NLA_NUL_STRING wants it. */
  attrText(type: number, value: string): this {
    const bytes = encoder.encode(value);
    const at = this.#value(type, bytes.length + 1);
    this.#bytes.set(bytes, at);
    this.#bytes[at + bytes.length] = 0;
    return this;
  }

  attrIp(type: number, ip: Ip): this {
    return this.attrBytes(type, ipBytes(ip));
  }

  /** An attribute that holds attributes, or a fixed header with attributes (VETH_INFO_PEER). */
  nest(type: number, body: () => void): this {
    const start = this.#take(headerBytes);
    body();
    this.#header(start, attributeLength(this.#length - start), type | nested);
    this.#pad();
    return this;
  }

  /** An attribute with room for a value, padded. @returns where the value begins */
  #value(type: number, bytes: number): number {
    const length = attributeLength(headerBytes + bytes);
    const start = this.#take(length);
    this.#header(start, length, type);
    this.#pad();
    return start + headerBytes;
  }

  /** Both halves in one step: an ADD writes some hundred. */
  #header(start: number, length: number, type: number): void {
    this.#view.setUint32(start, length | (type << 16), true);
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

function attributeLength(length: number): number {
  if (length <= 0xffff) return length;
  throw new Error(`Broken invariant: a netlink attribute has ${length} bytes`);
}

const viewOf = (bytes: Uint8Array<ArrayBuffer>): DataView =>
  new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
