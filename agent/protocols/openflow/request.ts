import { headerBytes, MessageType, multipartMore, wireVersion } from "./constants.ts";
import { MalformedMessage } from "./openflow-error.ts";
import { WireReader } from "./wire-reader.ts";
import { WireWriter } from "./wire-writer.ts";

/** One message before it is numbered and framed. */
export interface Request {
  /** Continues "Cannot …" in the error: `add flow "table=3, actions=drop"`. */
  readonly action: string;
  /** `MessageType`; an experimenter's message begins its body with vendor and subtype. */
  readonly type: number;
  /** Writes what follows the header. */
  readonly body: (writer: WireWriter) => void;
}

/** Appends one message: header (OpenFlow 1.5.1, 7.1.1) and body. @throws {InvalidFlow} where a number does not fit */
export function writeMessage(writer: WireWriter, request: Request, xid: number): void {
  const start = writer.length;
  writer.u8(wireVersion).u8(request.type).u16(0).u32(xid);
  request.body(writer);
  writer.setU16(start + 2, writer.length - start);
}

const versionBitmap = 1;

/** OFPT_HELLO with the one version that is spoken (OpenFlow 1.5.1, 7.5.1). */
export function writeHello(): Uint8Array {
  const writer = new WireWriter(16);
  writer
    .u8(wireVersion)
    .u8(MessageType.HELLO)
    .u16(headerBytes + 8)
    .u32(1);
  return writer
    .u16(versionBitmap)
    .u16(8)
    .u32(1 << wireVersion)
    .done();
}

/**
 * Whether the switch speaks our version, by its HELLO.
 * @param highest of its header, which counts where no bitmap follows
 * @throws {MalformedMessage}
 */
export function speaksOurVersion(highest: number, body: Uint8Array): boolean {
  const reader = new WireReader(body, "a HELLO");
  // Elements of other kinds, and more of them, are for later versions: they are to be skipped.
  while (reader.left >= 4) {
    const type = reader.u16();
    const length = reader.u16();
    if (length < 4) throw reader.malformed(`an element says ${length} bytes, wanted 4 at least`);
    const element = reader.part(length - 4, "an element of HELLO");
    reader.skipPadding(length);
    if (type === versionBitmap && element.left >= 4) return ((element.u32() >>> wireVersion) & 1) === 1;
  }
  return highest >= wireVersion;
}

/** The parts of one multipart reply, joined: 100,000 long flows, which take ten times as much once they are read. */
const maxMultipartBytes = 32 * 1024 * 1024;

/** A question whose answer is a list that may come in several messages (OpenFlow 1.5.1, 7.3.5). */
export interface MultipartRequest<T> {
  readonly action: string;
  /** `MultipartType`. */
  readonly type: number;
  readonly body: (writer: WireWriter) => void;
  /** Reads one entry, whole: entries do not go over a message's end. @throws {MalformedMessage} */
  readonly entry: (reader: WireReader) => T;
}

export function multipartMessage<T>(request: MultipartRequest<T>): Request {
  return {
    action: request.action,
    type: MessageType.MULTIPART_REQUEST,
    body: (writer) => {
      writer.u16(request.type).u16(0).zeros(4);
      request.body(writer);
    },
  };
}

/** Joins the parts of one answer. */
export class MultipartAnswer<T> {
  readonly entries: T[] = [];
  readonly #request: MultipartRequest<T>;
  readonly #maxBytes: number;
  #bytes = 0;

  /** @param maxBytes that all parts together may have */
  constructor(request: MultipartRequest<T>, maxBytes: number = maxMultipartBytes) {
    this.#request = request;
    this.#maxBytes = maxBytes;
  }

  /**
   * Takes the body of one part.
   * @returns whether it was the last one
   * @throws {MalformedMessage} also where the parts together are too long
   */
  push(body: Uint8Array): boolean {
    const reader = new WireReader(body, "a part of a multipart answer");
    const type = reader.u16();
    const flags = reader.u16();
    reader.skip(4);
    if (type !== this.#request.type) {
      throw reader.malformed(`it has type ${type}, wanted ${this.#request.type}`);
    }
    this.#bytes += body.length;
    if (this.#bytes > this.#maxBytes) {
      throw new MalformedMessage("a multipart answer", `it is longer than ${this.#maxBytes} bytes`);
    }
    while (reader.left > 0) this.entries.push(this.#request.entry(reader));
    return (flags & multipartMore) === 0;
  }
}
