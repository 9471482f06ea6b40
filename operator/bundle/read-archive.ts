import { createReadStream } from "node:fs";
import { createGunzip } from "node:zlib";
import { maxBundleFiles, maxDocumentBytes, maxIndexBytes } from "../../shared/documents/mod.ts";
import { CniCode, CniError } from "../../shared/errors.ts";
import { show } from "../../shared/schema/json-fields.ts";

/** All documents of a bundle: fifty nodes with five thousand pods have 20 MB. Its logs and dumps are not kept. */
const maxKeptBytes = 256 * 1024 * 1024;
/** What an archive may grow to: one that is all zeros is a thousand times as large as its file. */
const maxReadBytes = 4 * 1024 * 1024 * 1024;
/** The files that its index lists, and folders and what else a tool has packed with them. */
const maxEntries = 2 * maxBundleFiles;
const block = 512;

/**
 * The documents of a tar archive by their paths in it, without the folder that all of it may lie in.
 * @throws {CniError} for what is no archive, is cut off, or is larger than any bundle
 */
export async function readArchive(path: string): Promise<ReadonlyMap<string, Uint8Array>> {
  const files = new Map<string, Uint8Array>();
  let kept = 0;
  let prefix = "";
  for await (const { name, bytes } of entriesOf(chunksOf(path), path)) {
    if (name.endsWith("/index.json") && prefix === "" && !files.has("index.json"))
      prefix = name.slice(0, -"index.json".length);
    kept += bytes.length;
    if (kept > maxKeptBytes) throw broken(path, `its documents have more than ${maxKeptBytes} bytes`);
    files.set(name, bytes);
  }
  if (files.size === 0) throw broken(path, "it is no tar archive with documents");
  if (prefix === "") return files;
  return new Map(
    [...files].flatMap(([name, bytes]) => (name.startsWith(prefix) ? [[name.slice(prefix.length), bytes]] : [])),
  );
}

async function* chunksOf(path: string): AsyncGenerator<Uint8Array, void> {
  const isZipped = (await Bun.file(path).slice(0, 2).bytes()).join() === "31,139";
  const file = createReadStream(path);
  const stream = isZipped ? file.pipe(createGunzip()) : file;
  file.on("error", (caught) => stream.destroy(caught));
  try {
    let read = 0;
    for await (const chunk of stream as AsyncIterable<Uint8Array>) {
      read += chunk.length;
      if (read > maxReadBytes) throw broken(path, `it has more than ${maxReadBytes} bytes`);
      yield chunk;
    }
  } finally {
    file.destroy();
  }
}

interface Entry {
  readonly name: string;
  readonly bytes: Uint8Array;
}

/** Regular files that end in `.json` and may be documents. Headers as POSIX.1-1988 (ustar) has them. */
async function* entriesOf(chunks: AsyncIterable<Uint8Array>, path: string): AsyncGenerator<Entry, void> {
  const reader = new Reader(chunks);
  for (let number = 0; ; number++) {
    if (number > maxEntries) throw broken(path, `it has more than ${maxEntries} files`);
    const header = await reader.take(block);
    // Two blocks of zeros are the end; an end without them is none that matters.
    if (header === undefined || header.every((byte) => byte === 0)) return;
    if (header.length < block || !hasRightSum(header)) throw broken(path, "it is no tar archive, or is damaged");
    const size = octal(header, 124, 12);
    if (size === undefined) throw broken(path, "a file in it has a length that cannot be read");
    const name = nameIn(header);
    const most = name === "index.json" || name.endsWith("/index.json") ? maxIndexBytes : maxDocumentBytes;
    const isDocument = isRegular(header) && name.endsWith(".json") && size <= most && isInside(name);
    const bytes = isDocument ? await reader.take(size) : await reader.skip(size);
    if (bytes === undefined || (isDocument && bytes.length < size)) throw broken(path, "it is cut off");
    await reader.skip((block - (size % block)) % block);
    if (isDocument) yield { name: name.startsWith("./") ? name.slice(2) : name, bytes };
  }
}

const isRegular = (header: Uint8Array): boolean => header[156] === 0x30 || header[156] === 0;

/** Names are keys here, and no paths; still nothing outside of the bundle is one. */
const isInside = (name: string): boolean => !name.startsWith("/") && !name.split("/").includes("..");

function nameIn(header: Uint8Array): string {
  const name = textAt(header, 0, 100);
  const isUstar = textAt(header, 257, 5) === "ustar";
  const prefix = isUstar ? textAt(header, 345, 155) : "";
  return prefix === "" ? name : `${prefix}/${name}`;
}

function textAt(header: Uint8Array, at: number, length: number): string {
  const field = header.subarray(at, at + length);
  const end = field.indexOf(0);
  return new TextDecoder().decode(end < 0 ? field : field.subarray(0, end));
}

/** @returns `undefined` for what is no number */
function octal(header: Uint8Array, at: number, length: number): number | undefined {
  const text = textAt(header, at, length).trim();
  return /^[0-7]{1,11}$/.test(text) ? Number.parseInt(text, 8) : undefined;
}

function hasRightSum(header: Uint8Array): boolean {
  const wanted = octal(header, 148, 8);
  let sum = 0;
  for (const [i, byte] of header.entries()) sum += i >= 148 && i < 156 ? 0x20 : byte;
  return wanted === sum;
}

const broken = (path: string, is: string): CniError =>
  new CniError(CniCode.decode, `Cannot read the bundle ${show(path)}: ${is}`);

/** Bytes in the pieces that are asked for. */
class Reader {
  readonly #chunks: AsyncIterator<Uint8Array>;
  #rest = new Uint8Array();

  constructor(chunks: AsyncIterable<Uint8Array>) {
    this.#chunks = chunks[Symbol.asyncIterator]();
  }

  /** Fewer where there are no more; `undefined` where there are none. */
  async take(length: number): Promise<Uint8Array | undefined> {
    const parts: Uint8Array[] = [];
    const left = await this.#each(length, (part) => void parts.push(part));
    if (left === length && length > 0) return undefined;
    const all = new Uint8Array(length - left);
    let at = 0;
    for (const part of parts) {
      all.set(part, at);
      at += part.length;
    }
    return all;
  }

  /** @returns `undefined` where there are fewer */
  async skip(length: number): Promise<Uint8Array | undefined> {
    return (await this.#each(length, () => undefined)) > 0 ? undefined : new Uint8Array();
  }

  async #each(length: number, use: (part: Uint8Array) => void): Promise<number> {
    let left = length;
    while (left > 0) {
      if (this.#rest.length === 0) {
        const { done, value } = await this.#chunks.next();
        if (done === true) return left;
        this.#rest = new Uint8Array(value);
        continue;
      }
      const part = this.#rest.subarray(0, left);
      this.#rest = this.#rest.subarray(part.length);
      left -= part.length;
      use(part);
    }
    return 0;
  }
}
