import { bounds } from "./bounds.ts";
import { MessageType, multipartMore, type Version } from "./constants.ts";
import { MalformedMessage } from "./openflow-error.ts";
import type { Request } from "./request.ts";
import { WireReader } from "./wire-reader.ts";
import type { WireWriter } from "./wire-writer.ts";

/** A question whose answer is a list that may come in several messages (OpenFlow 1.5.1, 7.3.5). */
export interface MultipartRequest<T> {
  readonly action: string;
  /** `MultipartType`. */
  readonly type: number;
  readonly body: (writer: WireWriter, version: Version) => void;
  /** Reads one entry, whole: entries do not go over a message's end. @throws {MalformedMessage} */
  readonly entry: (reader: WireReader, version: Version) => T;
}

export function multipartMessage<T>(request: MultipartRequest<T>): Request {
  return {
    action: request.action,
    type: MessageType.MULTIPART_REQUEST,
    body: (writer, version) => {
      writer.u16(request.type).u16(0).zeros(4);
      request.body(writer, version);
    },
  };
}

/** Joins the parts of one answer. */
export class MultipartAnswer<T> {
  readonly entries: T[] = [];
  readonly #request: MultipartRequest<T>;
  readonly #mostBytes: number;
  #bytes = 0;

  /** @param mostBytes that all parts together may have */
  constructor(request: MultipartRequest<T>, mostBytes: number = bounds.multipartBytes) {
    this.#request = request;
    this.#mostBytes = mostBytes;
  }

  /**
   * Takes the body of one part.
   * @returns whether it was the last one
   * @throws {MalformedMessage} also where the parts together are too long
   */
  push(body: Uint8Array, version: Version): boolean {
    const reader = new WireReader(body, "a part of a multipart answer");
    const type = reader.u16();
    const flags = reader.u16();
    reader.skip(4);
    if (type !== this.#request.type) {
      throw reader.malformed(`it has type ${type}, wanted ${this.#request.type}`);
    }
    this.#bytes += body.length;
    if (this.#bytes > this.#mostBytes) {
      throw new MalformedMessage("a multipart answer", `it is longer than ${this.#mostBytes} bytes`);
    }
    while (reader.left > 0) this.entries.push(this.#request.entry(reader, version));
    return (flags & multipartMore) === 0;
  }
}
