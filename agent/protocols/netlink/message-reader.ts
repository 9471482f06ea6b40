import { Flag, MessageType } from "./constants.ts";

/** A datagram from the kernel that breaks its own framing: never expected, never trusted. */
export class MalformedMessage extends Error {
  override readonly name = "MalformedMessage";
}

/** One message of a datagram; `body` starts behind struct nlmsghdr and lies in the socket's buffer. */
export interface RawMessage {
  readonly type: number;
  readonly flags: number;
  readonly sequence: number;
  /** Of the socket that it is meant for, or that has asked for the change which it tells of. */
  readonly port: number;
  readonly body: Uint8Array;
}

const headerBytes = 16;
const attributeHeaderBytes = 4;

const align = (length: number): number => (length + 3) & ~3;

const viewOf = (bytes: Uint8Array): DataView => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);

/** Splits a datagram into its messages. @throws {MalformedMessage} */
export function readMessages(datagram: Uint8Array): readonly RawMessage[] {
  const messages: RawMessage[] = [];
  const view = viewOf(datagram);
  const { length: whole } = datagram;
  for (let at = 0; at < whole; ) {
    const left = whole - at;
    if (left < headerBytes) throw new MalformedMessage(`A netlink message ends after ${left} bytes of its header`);
    const length = view.getUint32(at, true);
    if (length < headerBytes || length > left) {
      throw new MalformedMessage(`A netlink message says ${length} bytes where ${left} are left`);
    }
    messages.push({
      type: view.getUint16(at + 4, true),
      flags: view.getUint16(at + 6, true),
      sequence: view.getUint32(at + 8, true),
      port: view.getUint32(at + 12, true),
      body: datagram.subarray(at + headerBytes, at + length),
    });
    at += align(length);
  }
  return messages;
}

/** The attributes of one level, one after the other: lists have many of one type. @throws {MalformedMessage} */
export function* readAttributes(bytes: Uint8Array): Generator<readonly [type: number, value: Uint8Array]> {
  const view = viewOf(bytes);
  for (let at = 0; at < bytes.length; at += align(view.getUint16(at, true))) {
    const length = checkAttribute(view, at);
    yield [typeAt(view, at), bytes.subarray(at + attributeHeaderBytes, at + length)];
  }
}

/** Of the attribute that begins there, with its header. @throws {MalformedMessage} where it does not end inside */
function checkAttribute(view: DataView, at: number): number {
  const left = view.byteLength - at;
  if (left < attributeHeaderBytes)
    throw new MalformedMessage(`A netlink attribute ends after ${left} bytes of its header`);
  const length = view.getUint16(at, true);
  if (length < attributeHeaderBytes || length > left)
    throw new MalformedMessage(`A netlink attribute says ${length} bytes where ${left} are left`);
  return length;
}

/** The two high bits are flags: nested, and network byte order. */
const typeAt = (view: DataView, at: number): number => view.getUint16(at + 2, true) & 0x3fff;

/**
 * The attributes of one level, the last of each type winning, as in the kernel. Of an interface's fifty a few are asked
 * for, so only these become arrays.
 */
export class Attributes {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  /** By type where the value begins. */
  readonly #places = new Map<number, number>();

  /** @throws {MalformedMessage} where a length leads out of `bytes` */
  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = viewOf(bytes);
    for (let at = 0; at < bytes.length; at += align(this.#view.getUint16(at, true))) {
      checkAttribute(this.#view, at);
      this.#places.set(typeAt(this.#view, at), at + attributeHeaderBytes);
    }
  }

  /** Parts of the datagram, which the next one overwrites. */
  entries(): Iterable<readonly [number, Uint8Array]> {
    return [...this.#places].map(([type, at]) => [type, this.#valueAt(at)]);
  }

  bytes(type: number): Uint8Array | undefined {
    const at = this.#places.get(type);
    return at === undefined ? undefined : this.#valueAt(at);
  }

  u32(type: number): number | undefined {
    const at = this.#sized(type, 4);
    return at === undefined ? undefined : this.#view.getUint32(at, true);
  }

  i32(type: number): number | undefined {
    const at = this.#sized(type, 4);
    return at === undefined ? undefined : this.#view.getInt32(at, true);
  }

  u16(type: number): number | undefined {
    const at = this.#sized(type, 2);
    return at === undefined ? undefined : this.#view.getUint16(at, true);
  }

  u8(type: number): number | undefined {
    const at = this.#sized(type, 1);
    return at === undefined ? undefined : this.#bytes[at];
  }

  /** Without its final zero, if it has one. */
  text(type: number): string | undefined {
    const value = this.bytes(type);
    if (value === undefined) return undefined;
    const zero = value.indexOf(0);
    return new TextDecoder().decode(zero < 0 ? value : value.subarray(0, zero));
  }

  nested(type: number): Attributes | undefined {
    const value = this.bytes(type);
    return value === undefined ? undefined : new Attributes(value);
  }

  #valueAt(at: number): Uint8Array {
    return this.#bytes.subarray(at, at + this.#lengthAt(at));
  }

  #lengthAt(at: number): number {
    return this.#view.getUint16(at - attributeHeaderBytes, true) - attributeHeaderBytes;
  }

  /** Where the value is. @throws {MalformedMessage} for one that is shorter */
  #sized(type: number, size: number): number | undefined {
    const at = this.#places.get(type);
    if (at === undefined || this.#lengthAt(at) >= size) return at;
    throw new MalformedMessage(`Netlink attribute ${type} has ${this.#lengthAt(at)} bytes, wanted ${size}`);
  }
}

/** The fixed header at the front of a message's body. @throws {MalformedMessage} where it is cut short */
export function fixedHeader(body: Uint8Array, size: number): { readonly view: DataView; readonly rest: Uint8Array } {
  if (body.length < size) throw new MalformedMessage(`A netlink message has ${body.length} bytes, wanted ${size}`);
  return { view: viewOf(body), rest: body.subarray(align(size)) };
}

export interface Answer {
  /** 0 for an acknowledgement. */
  readonly errno: number;
  readonly kernelText: string;
}

const tlvText = 1;

/** Reads NLMSG_ERROR (acknowledgements too) and the closing NLMSG_DONE of a dump. */
export function readAnswer(message: RawMessage): Answer {
  // Byte by byte: a view of them costs ten times as much, and every request gets an answer.
  const { body } = message;
  if (body.length < 4) throw new MalformedMessage(`A netlink message has ${body.length} bytes, wanted 4`);
  const errno = 0 - ((body[0] ?? 0) | ((body[1] ?? 0) << 8) | ((body[2] ?? 0) << 16) | ((body[3] ?? 0) << 24));
  if ((message.flags & Flag.ACK_TLVS) === 0) return { errno, kernelText: "" };
  let tlvsAt = 4;
  if (message.type === MessageType.ERROR) {
    const inner = fixedHeader(message.body, 4 + headerBytes).view.getUint32(4, true);
    tlvsAt += (message.flags & Flag.CAPPED) !== 0 ? headerBytes : align(inner);
  }
  const tlvs = new Attributes(message.body.subarray(Math.min(tlvsAt, message.body.length)));
  return { errno, kernelText: tlvs.text(tlvText) ?? "" };
}
