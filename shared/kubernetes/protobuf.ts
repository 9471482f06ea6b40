/**
 * Objects of the API server in its protobuf encoding (`application/vnd.kubernetes.protobuf`), in the shape of the JSON
 * encoding. Only the fields of a table are decoded, and all others are skipped. It exists beside
 * `shared/proto/wire.ts`, which reads whole messages of our own, because here most of a message is skipped.
 */

/** Fields by their number in `generated.proto` of the API group. */
export type FieldTable = Readonly<Record<number, FieldShape>>;

export type FieldShape =
  | readonly [name: string, kind: "string" | "strings" | "integer" | "boolean" | "map" | "time" | "intOrString"]
  | readonly [name: string, kind: "message" | "messages", table: FieldTable];

type Value = Record<string, unknown>;

/** Begins each object that is sent by itself (`runtime.Unknown` with its own prefix). */
const magic = [0x6b, 0x38, 0x73, 0x00];
const decoder = new TextDecoder();

/**
 * Short texts such as labels, namespaces, node names and protocols repeat, and are kept once, as the JSON parser does
 * it.
 */
const longestSharedBytes = 32;
const maxShared = 16_384;
const sharedTexts = new Map<string, string>();

function shared(text: string): string {
  const known = sharedTexts.get(text);
  if (known !== undefined) return known;
  // Frequent texts are soon added again.
  if (sharedTexts.size >= maxShared) sharedTexts.clear();
  sharedTexts.set(text, text);
  return text;
}

/** `metadata` of an object, as far as anybody reads it. */
export const objectMeta: FieldTable = {
  1: ["name", "string"],
  3: ["namespace", "string"],
  5: ["uid", "string"],
  6: ["resourceVersion", "string"],
  8: ["creationTimestamp", "time"],
  9: ["deletionTimestamp", "time"],
  11: ["labels", "map"],
  12: ["annotations", "map"],
};

export const listMeta: FieldTable = { 2: ["resourceVersion", "string"], 3: ["continue", "string"] };

const typeMeta: FieldTable = { 2: ["kind", "string"] };

const status: FieldTable = { 3: ["message", "string"], 4: ["reason", "string"], 6: ["code", "integer"] };

/** The object in an envelope; a `Status` where the server sends one in its place. @throws {Error} for bytes that are none */
export function decodeEnvelope(bytes: Uint8Array, table: FieldTable): Value {
  if (magic.some((byte, i) => bytes[i] !== byte)) throw new Error("the answer is no protobuf of Kubernetes");
  const envelope = new Input(bytes, magic.length, bytes.length);
  let kind: unknown;
  let raw: Input | undefined;
  while (!envelope.ended) {
    const tag = envelope.varint();
    if (tag === 0x0a) kind = decode(envelope.delimited(), typeMeta)["kind"];
    else if (tag === 0x12) raw = envelope.delimited();
    else envelope.skip(tag & 7);
  }
  if (raw === undefined) throw new Error("the answer's envelope is empty");
  return { ...decode(raw, kind === "Status" ? status : table), kind };
}

/** A message of the table's shape. Strings that are empty count as absent, as JSON leaves them out. */
export function decode(input: Input, table: FieldTable): Value {
  const value: Value = {};
  while (!input.ended) {
    const tag = input.varint();
    const shape = table[tag >>> 3];
    const wireType = tag & 7;
    if (shape === undefined || (wireType !== 2 && wireType !== 0)) input.skip(wireType);
    else if (wireType === 0) readNumber(input, shape, value);
    else readDelimited(input, shape, value);
  }
  return value;
}

function readNumber(input: Input, [name, kind]: FieldShape, value: Value): void {
  const number = input.varint();
  if (kind === "boolean") value[name] = number !== 0;
  else if (kind === "integer") value[name] = number;
}

function readDelimited(input: Input, shape: FieldShape, value: Value): void {
  const [name, kind] = shape;
  switch (kind) {
    case "string": {
      const text = input.text();
      if (text !== "") value[name] = text;
      break;
    }
    case "strings":
      append(value, name, input.text());
      break;
    case "map":
      value[name] ??= {};
      readEntry(input.delimited(), value[name] as Record<string, string>);
      break;
    case "time":
      value[name] = timeOf(input.delimited());
      break;
    case "intOrString":
      value[name] = intOrStringOf(input.delimited());
      break;
    case "message":
      // The format allows a message in pieces, but no Go server sends one.
      value[name] = decode(input.delimited(), shape[2]);
      break;
    case "messages":
      append(value, name, decode(input.delimited(), shape[2]));
      break;
    default:
      input.delimited();
  }
}

function append(value: Value, name: string, element: unknown): void {
  const list = value[name];
  if (Array.isArray(list)) list.push(element);
  else value[name] = [element];
}

function readEntry(input: Input, map: Record<string, string>): void {
  let [key, text] = ["", ""];
  while (!input.ended) {
    const tag = input.varint();
    if (tag === 0x0a) key = input.text();
    else if (tag === 0x12) text = input.text();
    else input.skip(tag & 7);
  }
  map[key] = text;
}

/** `Time` has whole seconds; absent for Go's zero time. */
function timeOf(input: Input): string | undefined {
  const { seconds } = decode(input, { 1: ["seconds", "integer"] });
  if (typeof seconds !== "number" || seconds > 253_402_300_799) return undefined;
  return new Date(seconds * 1000).toISOString().replace(".000Z", "Z");
}

function intOrStringOf(input: Input): unknown {
  const table = { 1: ["type", "integer"], 2: ["number", "integer"], 3: ["text", "string"] } as const;
  const { type, number, text } = decode(input, table);
  return type === 1 ? text : number;
}

/** A part of a message. Only texts in the table are copied. */
export class Input {
  readonly #bytes: Uint8Array;
  readonly #end: number;
  #at: number;

  constructor(bytes: Uint8Array, from: number, to: number) {
    this.#bytes = bytes;
    this.#at = from;
    this.#end = to;
  }

  get ended(): boolean {
    return this.#at >= this.#end;
  }

  /**
   * Exact up to 2^53, enough for every number that is read; a negative one, such as a zero time, comes out far larger.
   */
  varint(): number {
    let value = 0;
    let scale = 1;
    for (let i = 0; i < 10; i++) {
      if (this.#at >= this.#end) break;
      const byte = this.#bytes[this.#at++] ?? 0;
      value += (byte & 127) * scale;
      if (byte < 128) return value;
      scale *= 128;
    }
    throw new Error("a number of the protobuf answer has no end");
  }

  text(): string {
    const bytes = this.bytes();
    const text = decoder.decode(bytes);
    return bytes.length > longestSharedBytes ? text : shared(text);
  }

  /** A view. */
  bytes(): Uint8Array {
    const from = this.#length();
    return this.#bytes.subarray(from, this.#at);
  }

  delimited(): Input {
    const from = this.#length();
    return new Input(this.#bytes, from, this.#at);
  }

  skip(wireType: number): void {
    if (wireType === 0) this.varint();
    else if (wireType === 1) this.#advance(8);
    else if (wireType === 2) this.#length();
    else if (wireType === 5) this.#advance(4);
    else throw new Error(`the protobuf answer has a field of wire type ${wireType}`);
  }

  /** Moves behind a length-delimited value, and answers where that begins. */
  #length(): number {
    const length = this.varint();
    const from = this.#at;
    this.#advance(length);
    return from;
  }

  #advance(length: number): void {
    if (length > this.#end - this.#at) throw new Error("a field of the protobuf answer is longer than its message");
    this.#at += length;
  }
}
