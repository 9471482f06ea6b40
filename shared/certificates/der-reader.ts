/**
 * Reading DER (X.690) of somebody who is not trusted: one form for each value, as DER wants it, so that nobody reads a
 * request in another way than we do.
 */
export class DerReader {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  get isAtEnd(): boolean {
    return this.#at === this.#bytes.length;
  }

  /** The tag of the next value; `undefined` at the end. */
  get tag(): number | undefined {
    return this.#bytes[this.#at];
  }

  /** The contents of the next value, which has to be of this kind. @throws {Error} in a sentence */
  read(tag: number): Uint8Array {
    return this.#next(tag).contents;
  }

  /** A reader of the next value's contents. @throws {Error} */
  inside(tag: number): DerReader {
    return new DerReader(this.read(tag));
  }

  /** The next value as it stands, tag and length with it. @throws {Error} */
  whole(tag: number): Uint8Array {
    return this.#next(tag).whole;
  }

  /** @throws {Error} where something follows */
  end(): void {
    if (!this.isAtEnd) throw new Error(`${this.#bytes.length - this.#at} bytes follow where there is to be nothing`);
  }

  #next(tag: number): { readonly contents: Uint8Array; readonly whole: Uint8Array } {
    const from = this.#at;
    const is = this.#byte();
    if (is !== tag) throw new Error(`it has a value of kind ${is} at byte ${from}, wanted ${tag}`);
    const length = this.#length();
    if (length > this.#bytes.length - this.#at) throw new Error(`a value at byte ${from} is longer than what holds it`);
    const contents = this.#bytes.subarray(this.#at, this.#at + length);
    this.#at += length;
    return { contents, whole: this.#bytes.subarray(from, this.#at) };
  }

  #length(): number {
    const first = this.#byte();
    if (first < 0x80) return first;
    const count = first & 0x7f;
    // No request is longer than 65,535 bytes, and 0x80 is a length that DER does not have.
    if (count < 1 || count > 2) throw new Error(`a length at byte ${this.#at - 1} is none of DER's`);
    let length = 0;
    for (let digit = 0; digit < count; digit++) length = length * 0x100 + this.#byte();
    if (length < (count === 1 ? 0x80 : 0x100)) throw new Error(`a length at byte ${this.#at} is not the shortest`);
    return length;
  }

  #byte(): number {
    const byte = this.#bytes[this.#at];
    if (byte === undefined) throw new Error("it ends too early");
    this.#at++;
    return byte;
  }
}

/** `2.5.4.3`. @throws {Error} for what names nothing, or nothing that anybody needs */
export function oidText(contents: Uint8Array): string {
  const parts: number[] = [];
  let part = 0;
  let isBegun = false;
  for (const byte of contents) {
    if (!isBegun && byte === 0x80) throw new Error("an object identifier is not written in its shortest form");
    part = part * 0x80 + (byte & 0x7f);
    if (part > 0xffff_ffff) throw new Error("an object identifier is too large");
    isBegun = (byte & 0x80) !== 0;
    if (isBegun) continue;
    parts.push(part);
    part = 0;
  }
  const [both, ...rest] = parts;
  if (both === undefined || isBegun) throw new Error("an object identifier ends too early");
  const first = Math.min(Math.floor(both / 40), 2);
  return [first, both - first * 40, ...rest].join(".");
}

/** UTF8String, PrintableString and IA5String. */
const stringTags: ReadonlySet<number | undefined> = new Set([0x0c, 0x13, 0x16]);

/** The next value as text. @throws {Error} where it is none */
export function readText(reader: DerReader): string {
  const { tag } = reader;
  if (tag === undefined || !stringTags.has(tag)) throw new Error(`a text is of kind ${tag}, wanted UTF-8 or ASCII`);
  const contents = reader.read(tag);
  if (tag !== 0x0c && contents.some((byte) => byte > 0x7f)) throw new Error("a text of ASCII has other characters");
  return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(contents);
}

/**
 * The bytes of a text that holds one block of PEM and nothing else.
 * @throws {Error} in a sentence
 */
export function bytesOfPem(text: string, label: string, maxBytes: number): Uint8Array<ArrayBuffer> {
  if (text.length > maxBytes * 2)
    throw new Error(`it has ${text.length} characters, wanted ${maxBytes * 2} at the most`);
  const [begin, end] = [`-----BEGIN ${label}-----\n`, `-----END ${label}-----`];
  const trimmed = text.replaceAll("\r\n", "\n").trim();
  const body = trimmed.slice(begin.length, -end.length);
  if (!trimmed.startsWith(begin) || !trimmed.endsWith(end) || !/^[A-Za-z0-9+/=\n]+$/.test(body))
    throw new Error(`it is no PEM of one ${label}`);
  try {
    return Uint8Array.fromBase64(body);
  } catch {
    throw new Error(`it is no PEM of one ${label}`);
  }
}
