import { limits } from "../../limits.ts";
import { encodeFrame, FrameType, flags } from "../../rpc/h2-frames.ts";
import { encodeHeaders, type Header } from "../../rpc/hpack.ts";
import { prefixed } from "../../rpc/message-frame.ts";
import { GrpcCode } from "../../rpc/rpc-error.ts";

/** The frames of one answer, as far as its stream's window allows (RFC 9113, sections 5.2 and 6.9). */
export class AnswerSender {
  readonly #stream: number;
  /** What the peer takes on this stream; a setting may make it negative. */
  window: number;
  #head: Uint8Array | undefined;
  #messages: Uint8Array[] = [];
  /** How much of the first message has been sent. */
  #sent = 0;
  #waiting = 0;
  #last: Uint8Array | undefined;
  #ended = false;

  constructor(stream: number, window: number) {
    this.#stream = stream;
    this.window = window;
  }

  /** Bytes of messages that wait for the peer's window. */
  get waiting(): number {
    return this.#waiting;
  }

  /** Whether the stream's last frame has gone out. */
  get ended(): boolean {
    return this.#ended;
  }

  /** Whether there is something that the stream's own window allows to send. */
  get ready(): boolean {
    if (this.#ended) return false;
    return this.#waiting > 0 ? this.#head !== undefined || this.window > 0 : (this.#head ?? this.#last) !== undefined;
  }

  /** The header block in front of the messages. */
  begin(block: Uint8Array): void {
    this.#head = block;
  }

  message(bytes: Uint8Array): void {
    const framed = prefixed(bytes);
    this.#messages.push(framed);
    this.#waiting += framed.length;
  }

  /** The header block that ends the stream, behind all messages. */
  end(block: Uint8Array): void {
    this.#last = block;
  }

  /** Appends the frames that may be sent now. @returns how many bytes of the windows it took, `most` at most */
  frames(out: Uint8Array[], most: number, frameBytes: number): number {
    if (this.#head !== undefined) {
      out.push(encodeFrame(FrameType.headers, flags.endHeaders, this.#stream, this.#head));
      this.#head = undefined;
    }
    let taken = 0;
    for (let message = this.#messages[0]; message !== undefined; message = this.#messages[0]) {
      const bytes = Math.min(message.length - this.#sent, frameBytes, most - taken, this.window);
      if (bytes <= 0) return taken;
      const part = message.subarray(this.#sent, this.#sent + bytes);
      out.push(encodeFrame(FrameType.data, 0, this.#stream, part));
      taken += bytes;
      this.window -= bytes;
      this.#waiting -= bytes;
      this.#sent += bytes;
      if (this.#sent < message.length) continue;
      this.#messages.shift();
      this.#sent = 0;
    }
    if (this.#last !== undefined) {
      out.push(encodeFrame(FrameType.headers, flags.endHeaders | flags.endStream, this.#stream, this.#last));
      this.#ended = true;
    }
    return taken;
  }
}

const answerHead: readonly Header[] = [
  [":status", "200"],
  ["content-type", "application/grpc"],
];

/** In front of an answer's messages. */
export const answerHeadBlock: Uint8Array = encodeHeaders(answerHead);

const succeeded: Uint8Array = encodeHeaders([["grpc-status", "0"]]);

/** Behind an answer's messages. */
export const trailersBlock = (code: GrpcCode, message: string): Uint8Array =>
  code === GrpcCode.ok && message === "" ? succeeded : encodeHeaders(statusHeaders(code, message));

/** An answer without messages. */
export const trailersOnlyBlock = (code: GrpcCode, message: string): Uint8Array =>
  encodeHeaders([...answerHead, ...statusHeaders(code, message)]);

export const httpStatusBlock = (status: number): Uint8Array => encodeHeaders([[":status", String(status)]]);

function statusHeaders(code: GrpcCode, message: string): Header[] {
  const headers: Header[] = [["grpc-status", String(code)]];
  if (message !== "") headers.push(["grpc-message", percentEncode(message)]);
  // Tells a caller that compressed what it may do instead (doc/compression.md).
  if (code === GrpcCode.unimplemented) headers.push(["grpc-accept-encoding", "identity"]);
  return headers;
}

/** `grpc-message`: UTF-8, percent-encoded except for printable ASCII. Cut between two characters. */
export function percentEncode(text: string): string {
  let encoded = "";
  for (const character of text) {
    const next = isPlain(character) ? character : percentOf(character);
    if (encoded.length + next.length > limits.statusMessageBytes) break;
    encoded += next;
  }
  return encoded;
}

const isPlain = (character: string): boolean => character >= " " && character <= "~" && character !== "%";

function percentOf(character: string): string {
  let encoded = "";
  for (const byte of new TextEncoder().encode(character))
    encoded += `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  return encoded;
}
