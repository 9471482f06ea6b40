import type { Ip } from "../../../shared/net/ip.ts";
import { ipBytes } from "./bytes.ts";

/** One request before it is numbered and framed. */
export interface Message {
  /** Continues "Cannot …" in the error: `create "web-1a2b3c"`. A getter where it takes time to make. */
  readonly action: string;
  readonly type: number;
  /** Beside REQUEST, and ACK, which the socket sets. */
  readonly flags?: number;
  /** An errno that says no more than that it is so already: no error of a batch, since making one costs an ADD 14,000 instructions. */
  readonly harmless?: number;
  /** Writes the fixed header of the message's family, then attributes. */
  readonly body: (writer: MessageWriter) => void;
}

/** struct nlmsghdr. */
const messageHeaderBytes = 16;
/** struct nlattr. */
const headerBytes = 4;
/** NLA_F_NESTED. */
const nested = 0x8000;
const encoder = new TextEncoder();

/**
 * Frames netlink messages one behind the other into one buffer; nothing is ever written beyond its end. Everything of a
 * message begins at a multiple of four bytes, so most of it is written in whole words: in the interpreter, which runs the
 * first ADDs, one word costs a third of a call of `DataView`.
 */
export class MessageWriter {
  readonly #kept: Uint8Array<ArrayBuffer>;
  #bytes: Uint8Array<ArrayBuffer>;
  /** The same memory, in the machine's byte order, as netlink has it. */
  #words: Uint32Array;
  /** How many bytes there are: to ask an array for its length costs as much as five words. */
  #room: number;
  #length = 0;
  #mostBytes: number;

  /** @param bytes begins at a multiple of four in its memory */
  constructor(bytes: Uint8Array<ArrayBuffer>) {
    this.#kept = bytes;
    this.#bytes = bytes;
    this.#words = wordsOf(bytes);
    this.#room = bytes.length;
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
    this.#use(this.#kept);
  }

  /** Appends one message (struct nlmsghdr and what `body` writes). */
  message(type: number, flags: number, sequence: number, body: (writer: MessageWriter) => void): void {
    const start = this.#take(messageHeaderBytes);
    const word = start >>> 2;
    this.#words[word + 1] = type | (flags << 16);
    this.#words[word + 2] = sequence;
    this.#words[word + 3] = 0;
    body(this);
    this.#words[word] = this.#length - start;
  }

  /** Of a fixed header. */
  u32(value: number): this {
    // First of all, since it may take a larger buffer; so in all of these.
    const at = this.#take(4);
    this.#words[at >>> 2] = value;
    return this;
  }

  /** Four fields of one byte each, of a fixed header. */
  u8x4(first: number, second = 0, third = 0, fourth = 0): this {
    return this.u32(first | (second << 8) | (third << 16) | (fourth << 24));
  }

  attrU32(type: number, value: number): this {
    const at = this.#value(type, 4);
    this.#words[at >>> 2] = value;
    return this;
  }

  /** Highest byte first, as nftables has its numbers. */
  attrU32Net(type: number, value: number): this {
    const swapped = (value << 24) | ((value & 0xff00) << 8) | ((value >>> 8) & 0xff00) | (value >>> 24);
    return this.attrU32(type, swapped);
  }

  attrU16(type: number, value: number): this {
    const at = this.#value(type, 2);
    this.#words[at >>> 2] = value & 0xffff;
    return this;
  }

  attrU8(type: number, value: number): this {
    const at = this.#value(type, 1);
    this.#words[at >>> 2] = value & 0xff;
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
    this.#header(start, this.#length - start, type | nested);
    return this;
  }

  /** An attribute with room for a value, its padding zero. @returns where the value begins */
  #value(type: number, bytes: number): number {
    const length = headerBytes + bytes;
    const start = this.#take((length + 3) & ~3);
    this.#words[(this.#length >>> 2) - 1] = 0;
    this.#header(start, length, type);
    return start + headerBytes;
  }

  #header(start: number, length: number, type: number): void {
    if (length > 0xffff) throw new Error(`Broken invariant: a netlink attribute has ${length} bytes`);
    this.#words[start >>> 2] = length | (type << 16);
  }

  #take(count: number): number {
    const at = this.#length;
    if (at + count > this.#room) this.#grow(at + count);
    this.#length = at + count;
    return at;
  }

  #grow(wanted: number): void {
    if (wanted > this.#mostBytes)
      throw new Error(`Broken invariant: a netlink request is longer than ${this.#mostBytes} bytes`);
    const grown = new Uint8Array(new ArrayBuffer(Math.min(this.#mostBytes, Math.max(wanted, 2 * this.#room))));
    grown.set(this.#bytes.subarray(0, this.#length));
    this.#use(grown);
  }

  #use(bytes: Uint8Array<ArrayBuffer>): void {
    this.#bytes = bytes;
    this.#words = wordsOf(bytes);
    this.#room = bytes.length;
  }
}

const wordsOf = (bytes: Uint8Array<ArrayBuffer>): Uint32Array =>
  new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.length >>> 2);
