/**
 * Protocol buffers by table: each message names its fields once, and reads and writes by that (protobuf.dev,
 * "Encoding"). No reflection and no generated code, because every plugin start would pay for them.
 */

export interface Codec<T> {
  encode(value: T): Uint8Array;
  /** @throws {WireError} for bytes that are not such a message; fields that are not in the table are skipped */
  decode(bytes: Uint8Array): T;
}

/** Bytes that are no message of the expected type. */
export class WireError extends Error {
  override readonly name = "WireError";
}

/** One line of a message's table. */
export interface Field<V> {
  readonly number: number;
  readonly wireType: 0 | 2;
  /** What an absent field reads as. */
  absent(): V;
  write(out: Writer, value: V): void;
  /** `previous` is the value so far: a field may come more than once. */
  read(input: Reader, previous: V): V;
}

/** A codec that can also continue a message, because an embedded one may come in pieces. */
export interface MessageCodec<T> extends Codec<T> {
  merge(target: T, bytes: Uint8Array): T;
  absent(): T;
}

type Table = Readonly<Record<string, Field<unknown>>>;
type ValueOf<F> = F extends Field<infer V> ? V : never;
/** Of embedded messages, which may be left out. */
type OptionalNames<T extends Table> = {
  [K in keyof T]: undefined extends ValueOf<T[K]> ? K : never;
}[keyof T];

/** What a table describes, name by name. */
type Described<T extends Table> = { readonly [K in Exclude<keyof T, OptionalNames<T>>]: ValueOf<T[K]> } & {
  readonly [K in OptionalNames<T>]?: ValueOf<T[K]> | undefined;
};

/** The message that a codec reads and writes: `type GcRequest = MessageOf<typeof GcRequest>`. */
export type MessageOf<C> = C extends Codec<infer T> ? { readonly [K in keyof T]: T[K] } : never;

/**
 * Fields are written in the order of the table, so list them by number, as other implementations write them.
 * @param table made at once, or with the first message: a plugin loads messages of which a call needs one or two
 */
export const message = codecOf as unknown as <T extends Table>(table: T | (() => T)) => MessageCodec<Described<T>>;

type FieldsOf<T> = { readonly [K in keyof T]-?: Field<T[K]> };

function codecOf<T extends object>(given: FieldsOf<T> | (() => FieldsOf<T>)): MessageCodec<T> {
  let made = typeof given === "function" ? undefined : given;
  const fields = (): FieldsOf<T> => (made ??= (given as () => FieldsOf<T>)());
  // Plain loops over the table: a process of a few milliseconds handles each message once.
  const absent = (): T => {
    const table = fields();
    const value = {} as T;
    for (const name in table) value[name] = table[name].absent();
    return value;
  };
  const merge = (target: T, bytes: Uint8Array): T => {
    const table = fields();
    const input = new Reader(bytes);
    while (!input.ended()) {
      const tag = input.tag();
      let known = false;
      for (const name in table) {
        const field = table[name];
        // A known number with another wire type counts as unknown, as in other implementations.
        if (field.number !== tag.number || field.wireType !== tag.wireType) continue;
        target[name] = field.read(input, target[name]);
        known = true;
        break;
      }
      if (!known) input.skip(tag.number, tag.wireType, 0);
    }
    return target;
  };
  return {
    encode(value) {
      const table = fields();
      const out = new Writer();
      for (const name in table) table[name].write(out, value[name]);
      return out.finish();
    },
    decode: (bytes) => merge(absent(), bytes),
    merge,
    absent,
  };
}

/** `string`: "" when absent. */
export const text = (number: number): Field<string> => ({
  number,
  wireType: 2,
  absent: () => "",
  write: (out, value) => value !== "" && out.delimited(number, new TextEncoder().encode(value)),
  read: (input) => decodeText(input.delimited()),
});

/** `bytes`: empty when absent. What is read is a view into the message. */
export const bytes = (number: number): Field<Uint8Array> => ({
  number,
  wireType: 2,
  absent: () => new Uint8Array(0),
  write: (out, value) => value.length > 0 && out.delimited(number, value),
  read: (input) => input.delimited(),
});

/** `bool`: `false` when absent. */
export const flag = (number: number): Field<boolean> => ({
  number,
  wireType: 0,
  absent: () => false,
  write: (out, value) => value && out.integer(number, 1),
  read: (input) => input.varint(),
});

/** `int32` and enumerations: 0 when absent; wider values lose their upper half, as the format says. */
export const int32 = (number: number): Field<number> => ({
  number,
  wireType: 0,
  absent: () => 0,
  write: (out, value) => value !== 0 && out.integer(number, value),
  read: (input) => {
    input.varint();
    return input.low | 0;
  },
});

/** `int64` as a number: 0 when absent, and refused outside of what a number holds exactly. */
export const int64 = (number: number): Field<number> => ({
  number,
  wireType: 0,
  absent: () => 0,
  write: (out, value) => value !== 0 && out.integer(number, value),
  read: (input) => {
    input.varint();
    const value = (input.high | 0) * 4294967296 + (input.low >>> 0);
    if (!Number.isSafeInteger(value))
      throw new WireError(`Cannot read field ${number}: its value is beyond 2^53, wanted an exact number`);
    return value;
  },
});

/** An embedded message: `undefined` when absent. */
export const nested = <T extends object>(number: number, codec: MessageCodec<T>): Field<T | undefined> => ({
  number,
  wireType: 2,
  absent: () => undefined,
  write: (out, value) => value !== undefined && out.delimited(number, codec.encode(value)),
  read: (input, previous) => codec.merge(previous ?? codec.absent(), input.delimited()),
});

/** `repeated` embedded messages. */
export const repeated = <T extends object>(number: number, codec: MessageCodec<T>): Field<readonly T[]> => ({
  number,
  wireType: 2,
  absent: () => [],
  write: (out, values) => {
    for (const value of values) out.delimited(number, codec.encode(value));
  },
  read: (input, previous) => append(previous, codec.decode(input.delimited())),
});

/** `repeated string`. */
export const texts = (number: number): Field<readonly string[]> => ({
  number,
  wireType: 2,
  absent: () => [],
  write: (out, values) => {
    for (const value of values) out.delimited(number, new TextEncoder().encode(value));
  },
  read: (input, previous) => append(previous, decodeText(input.delimited())),
});

/** The array is the one that `absent` made for this message: growing it in place keeps many elements cheap. */
function append<T>(values: readonly T[], value: T): readonly T[] {
  (values as T[]).push(value);
  return values;
}

function decodeText(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (cause) {
    throw new WireError("Cannot read a string: it is not UTF-8, wanted UTF-8", { cause });
  }
}

/** Groups, an obsolete wire type, are only skipped; since they nest, their depth is bounded. */
const deepestGroup = 32;

export class Reader {
  /** The halves of the last varint, as 32-bit integers. */
  low = 0;
  high = 0;
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  ended(): boolean {
    return this.#at >= this.#bytes.length;
  }

  /** Reads 64 bits into `low` and `high`; `true` where they are not zero. */
  varint(): boolean {
    this.low = 0;
    this.high = 0;
    for (let shift = 0; shift < 70; shift += 7) {
      const byte = this.#bytes[this.#at++];
      if (byte === undefined) throw new WireError("Cannot read a number: the message ends inside it");
      const bits = byte & 127;
      if (shift < 32) this.low |= bits << shift;
      if (shift === 28) this.high |= bits >> 4;
      if (shift > 28) this.high |= bits << (shift - 32);
      if (byte < 128) return this.low !== 0 || this.high !== 0;
    }
    throw new WireError("Cannot read a number: it is longer than 10 bytes");
  }

  tag(): { number: number; wireType: number } {
    this.varint();
    const number = this.low >>> 3;
    if (number === 0 || this.high !== 0)
      throw new WireError("Cannot read a field: its number is out of range, wanted 1 to 536870911");
    return { number, wireType: this.low & 7 };
  }

  /** A view of the next length-delimited value. */
  delimited(): Uint8Array {
    this.varint();
    const length = this.low >>> 0;
    if (this.high !== 0) throw new WireError("Cannot read a field: its length is beyond 2^32");
    return this.#take(length);
  }

  skip(number: number, wireType: number, depth: number): void {
    if (wireType === 0) this.varint();
    else if (wireType === 1) this.#take(8);
    else if (wireType === 2) this.delimited();
    else if (wireType === 5) this.#take(4);
    else if (wireType === 3 && depth < deepestGroup) {
      for (let inner = this.tag(); inner.wireType !== 4; inner = this.tag())
        this.skip(inner.number, inner.wireType, depth + 1);
      if (this.low >>> 3 !== number)
        throw new WireError(`Cannot skip field ${number}: its group ends as ${this.low >>> 3}, wanted the same number`);
    } else {
      throw new WireError(`Cannot skip field ${number}: its wire type is ${wireType}, wanted 0, 1, 2 or 5`);
    }
  }

  #take(length: number): Uint8Array {
    const left = this.#bytes.length - this.#at;
    if (length > left)
      throw new WireError(`Cannot read a field: it has ${length} bytes, wanted at most the ${left} left`);
    this.#at += length;
    return this.#bytes.subarray(this.#at - length, this.#at);
  }
}

export class Writer {
  #bytes = new Uint8Array(256);
  #length = 0;

  integer(number: number, value: number): void {
    if (!Number.isSafeInteger(value))
      throw new WireError(`Cannot write field ${number}: its value is ${value}, wanted a whole number within 2^53`);
    this.#room(20);
    this.#varint(number * 8, 0);
    const high = Math.floor(value / 4294967296);
    this.#varint(value - high * 4294967296, high >>> 0);
  }

  delimited(number: number, value: Uint8Array): void {
    this.#room(20 + value.length);
    this.#varint(number * 8 + 2, 0);
    this.#varint(value.length, 0);
    this.#bytes.set(value, this.#length);
    this.#length += value.length;
  }

  finish(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }

  #varint(low: number, high: number): void {
    while (high !== 0 || low > 127) {
      this.#bytes[this.#length++] = (low & 127) | 128;
      low = ((low >>> 7) | (high << 25)) >>> 0;
      high >>>= 7;
    }
    this.#bytes[this.#length++] = low;
  }

  #room(more: number): void {
    if (this.#length + more <= this.#bytes.length) return;
    const grown = new Uint8Array(2 * this.#length + more);
    grown.set(this.#bytes.subarray(0, this.#length));
    this.#bytes = grown;
  }
}
