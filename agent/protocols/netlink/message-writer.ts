import type { Ip } from "../../../shared/net/ip.ts";
import { ipBytes } from "./bytes.ts";

/** One request before it is numbered and framed. */
export interface Message {
  /** Continues "Cannot …" in the error: `create "web-1a2b3c"`. Made where there is one. */
  readonly action: () => string;
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
const mostAttributeBytes = 0xffff;
const encoder = new TextEncoder();
/** With their zeros; as many as the tables and sets of a node with some networks have. */
const names = new Map<string, Uint8Array>();
const mostNames = 256;

/**
 * Frames netlink messages one behind the other into one buffer; nothing is ever written beyond its end. Everything of a
 * message begins at a multiple of four bytes, so most of it is written in whole words: in the interpreter, which runs the
 * first ADDs, one word costs a third of a call of `DataView`.
 */
export class MessageWriter {
  readonly #kept: Uint8Array<ArrayBuffer>;
  readonly #keptBytes: number;
  #bytes: Uint8Array<ArrayBuffer>;
  /** The same memory, in the machine's byte order, as netlink has it. */
  #words: Uint32Array;
  /** How many bytes there are: to ask an array for its length costs as much as five words. */
  #room: number;
  #length = 0;
  #mostBytes: number;
  /** Where the attributes begin that have begun and not ended. */
  readonly #begun: number[] = [];
  #depth = 0;

  /** @param bytes begins at a multiple of four in its memory */
  constructor(bytes: Uint8Array<ArrayBuffer>) {
    this.#kept = bytes;
    this.#keptBytes = bytes.length;
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
  reset(mostBytes = this.#keptBytes): void {
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
    this.#depth = 0;
    body(this);
    if (this.#depth !== 0) throw new Error("Broken invariant: an attribute of a netlink message has no end");
    this.#words[word] = this.#length - start;
  }

  /** Of a fixed header. */
  u32(value: number): this {
    const at = this.#take(4);
    this.#words[at >>> 2] = value;
    return this;
  }

  /** Four fields of one byte each, of a fixed header. */
  u8x4(first: number, second = 0, third = 0, fourth = 0): this {
    return this.u32(first | (second << 8) | (third << 16) | (fourth << 24));
  }

  /** A fixed header of four words, as that of each message about interfaces: at once, since an ADD has eleven. */
  u32x4(first: number, second: number, third: number, fourth: number): this {
    const at = this.#take(16) >>> 2;
    const words = this.#words;
    words[at] = first;
    words[at + 1] = second;
    words[at + 2] = third;
    words[at + 3] = fourth;
    return this;
  }

  attrU32(type: number, value: number): this {
    return this.#word(type, headerBytes + 4, value);
  }

  /** Highest byte first, as nftables has its numbers. */
  attrU32Net(type: number, value: number): this {
    return this.#word(type, headerBytes + 4, swapped(value));
  }

  attrU16(type: number, value: number): this {
    return this.#word(type, headerBytes + 2, value & 0xffff);
  }

  attrU8(type: number, value: number): this {
    return this.#word(type, headerBytes + 1, value & 0xff);
  }

  attrBytes(type: number, value: Uint8Array): this {
    const at = this.#value(type, value.length);
    this.#bytes.set(value, at);
    return this;
  }

  /** Ends with a zero byte, as the kernel's NLA_NUL_STRING wants it. */
  attrText(type: number, value: string): this {
    return this.attrBytes(type, encoder.encode(`${value}\0`));
  }

  /** The same for a name that comes again and again, such as that of a table: it is encoded once. */
  attrName(type: number, name: string): this {
    const known = names.get(name);
    if (known !== undefined) return this.attrBytes(type, known);
    if (names.size < mostNames) names.set(name, encoder.encode(`${name}\0`));
    return this.attrText(type, name);
  }

  attrIp(type: number, ip: Ip): this {
    return ip.family === 4 ? this.attrU32Net(type, Number(ip.value)) : this.attrBytes(type, ipBytes(ip));
  }

  /**
   * Begins an attribute that holds what is written up to its `end`: attributes, or a fixed header with attributes
   * (VETH_INFO_PEER).
   */
  begin(type: number): this {
    const start = this.#take(headerBytes);
    this.#words[start >>> 2] = (type | nested) << 16;
    this.#begun[this.#depth] = start;
    this.#depth++;
    return this;
  }

  /** Of the attribute that was begun last. */
  end(): this {
    this.#depth--;
    const start = this.#begun[this.#depth];
    if (start === undefined) throw new Error("Broken invariant: an attribute of a netlink message ends twice");
    const length = this.#length - start;
    if (length > mostAttributeBytes) throw tooLong(length);
    // Its type is there already, above the length.
    this.#words[start >>> 2] = (this.#words[start >>> 2] ?? 0) | length;
    return this;
  }

  /** An attribute that holds one other with these bytes, as nftables has its data. */
  attrNested(type: number, inner: number, value: Uint8Array): this {
    const length = headerBytes + value.length;
    const outerLength = headerBytes + ((length + 3) & ~3);
    const start = this.#take(outerLength);
    if (outerLength > mostAttributeBytes) throw tooLong(outerLength);
    const words = this.#words;
    const at = start >>> 2;
    words[(this.#length >>> 2) - 1] = 0;
    words[at] = outerLength | ((type | nested) << 16);
    words[at + 1] = length | (inner << 16);
    this.#bytes.set(value, start + 2 * headerBytes);
    return this;
  }

  /** What was written before, from a multiple of four bytes to another. */
  written(bytes: Uint8Array): this {
    const at = this.#take(bytes.length);
    this.#bytes.set(bytes, at);
    return this;
  }

  /** An attribute with a value of four bytes at most, the others zero. @param length without these */
  #word(type: number, length: number, value: number): this {
    const at = this.#take(headerBytes + 4) >>> 2;
    const words = this.#words;
    words[at] = length | (type << 16);
    words[at + 1] = value;
    return this;
  }

  /** An attribute with room for a value, its padding zero. @returns where the value begins */
  #value(type: number, bytes: number): number {
    const length = headerBytes + bytes;
    const start = this.#take((length + 3) & ~3);
    if (length > mostAttributeBytes) throw tooLong(length);
    this.#words[(this.#length >>> 2) - 1] = 0;
    this.#words[start >>> 2] = length | (type << 16);
    return start + headerBytes;
  }

  /** First of all in each of these, since it may take a larger buffer. @returns where the bytes begin */
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

/** In the other byte order. */
const swapped = (value: number): number =>
  (value << 24) | ((value & 0xff00) << 8) | ((value >>> 8) & 0xff00) | (value >>> 24);

const tooLong = (bytes: number): Error => new Error(`Broken invariant: a netlink attribute has ${bytes} bytes`);

const wordsOf = (bytes: Uint8Array<ArrayBuffer>): Uint32Array =>
  new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.length >>> 2);
