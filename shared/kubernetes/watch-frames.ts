import { show } from "../schema/json-fields.ts";
import { parsedObject } from "./api-client.ts";
import { decodeEnvelope, type FieldTable, Input } from "./protobuf.ts";
import { type ApiObject, mapIn } from "./resource.ts";

export interface WatchEvent {
  /** `ADDED`, `MODIFIED`, `DELETED`, `BOOKMARK`, `ERROR`; or another type of a later server. */
  readonly type: string;
  readonly object: ApiObject;
}

/** One event of a watch; the API server itself takes objects of 1.5 MiB at most. */
const maxEventBytes = 4 * 1024 * 1024;

/** How frames are told apart: by the ends of lines, or by their length in front, in four bytes. */
type Framing = "lines" | "lengths";

const lengthBytes = 4;

/** Cuts a stream of bytes into frames. Holds at most one incomplete frame. */
export class FrameCutter {
  readonly #framing: Framing;
  readonly #maxBytes: number;
  /** The chunks of the incomplete frame, which are joined once it is complete. */
  #parts: Uint8Array[] = [];
  #held = 0;

  constructor(framing: Framing, maxBytes: number) {
    this.#framing = framing;
    this.#maxBytes = maxBytes;
  }

  /** The frames that end in this chunk, without their lengths. @throws {Error} for one that is too long */
  *push(chunk: Uint8Array): Generator<Uint8Array, void> {
    let rest = chunk;
    for (let length = this.#missing(rest); length !== undefined; length = this.#missing(rest)) {
      const frame = this.#take(rest.subarray(0, length));
      rest = rest.subarray(length);
      yield this.#framing === "lines" ? frame : frame.subarray(lengthBytes);
    }
    if (rest.length === 0) return;
    this.#parts.push(new Uint8Array(rest));
    this.#held += rest.length;
    if (this.#held > this.#maxBytes) throw this.#tooLong();
  }

  /** Whether the bytes so far end with a frame. */
  get isWhole(): boolean {
    return this.#held === 0;
  }

  /** How many of these bytes complete the frame; `undefined` if it needs more. */
  #missing(bytes: Uint8Array): number | undefined {
    if (this.#framing === "lines") {
      const end = bytes.indexOf(0x0a);
      return end < 0 ? undefined : end + 1;
    }
    const head = new Uint8Array(lengthBytes);
    let known = 0;
    for (const part of [...this.#parts, bytes])
      for (let i = 0; i < part.length && known < lengthBytes; i++) head[known++] = part[i] ?? 0;
    if (known < lengthBytes) return undefined;
    const length = lengthBytes + new DataView(head.buffer).getUint32(0);
    if (length > this.#maxBytes) throw this.#tooLong();
    return length - this.#held <= bytes.length ? length - this.#held : undefined;
  }

  #take(end: Uint8Array): Uint8Array {
    if (this.#parts.length === 0) return end;
    const bytes = new Uint8Array(this.#held + end.length);
    let at = 0;
    for (const part of [...this.#parts, end]) {
      bytes.set(part, at);
      at += part.length;
    }
    this.#parts = [];
    this.#held = 0;
    return bytes;
  }

  #tooLong(): Error {
    return new Error(`an event has more than ${this.#maxBytes} bytes`);
  }
}

/** Cuts a watch's bytes into events. */
export class WatchFrames {
  readonly #table: FieldTable | undefined;
  readonly #frames: FrameCutter;

  /** @param table of the objects where the events are in protobuf; absent: JSON, one event a line */
  constructor(table: FieldTable | undefined) {
    this.#table = table;
    this.#frames = new FrameCutter(table === undefined ? "lines" : "lengths", maxEventBytes);
  }

  /** @throws {Error} for bytes that are no event */
  *push(chunk: Uint8Array): Generator<WatchEvent, void> {
    for (const frame of this.#frames.push(chunk)) {
      const read = this.#table === undefined ? jsonEvent(frame) : protobufEvent(frame, this.#table);
      if (read !== undefined) yield read;
    }
  }
}

function jsonEvent(line: Uint8Array): WatchEvent | undefined {
  if (line.every((byte) => byte <= 0x20)) return undefined;
  const event = parsedObject(line);
  const { type } = event;
  if (typeof type !== "string") throw new Error(`an event of the watch is ${show(event)}`);
  return { type, object: mapIn(event, "object") };
}

/** `WatchEvent` of meta/v1; the object in it has an envelope of its own. */
function protobufEvent(frame: Uint8Array, table: FieldTable): WatchEvent {
  const input = new Input(frame, 0, frame.length);
  let type = "";
  let object: ApiObject = {};
  while (!input.ended) {
    const tag = input.varint();
    if (tag === 0x0a) type = input.text();
    else if (tag === 0x12) object = objectIn(input.delimited(), table);
    else input.skip(tag & 7);
  }
  return { type, object };
}

function objectIn(extension: Input, table: FieldTable): ApiObject {
  while (!extension.ended) {
    const tag = extension.varint();
    if (tag === 0x0a) return decodeEnvelope(extension.bytes(), table);
    extension.skip(tag & 7);
  }
  return {};
}
