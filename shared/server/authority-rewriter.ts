import { FrameType, flags, frameHeaderBytes, initialFrameBytes, preface, readUint32 } from "../rpc/h2-frames.ts";
import { createHuffmanTables } from "../rpc/huffman.ts";
import { rewriteAuthority } from "./authority-field.ts";

/**
 * Makes `:authority` acceptable in what an HTTP/2 client sends.
 *
 * Older Go clients that dial a socket by its path send that path as `:authority`, and HTTP/2
 * servers of JavaScript runtimes end the stream with PROTOCOL_ERROR for its slashes. Here a slash becomes a
 * dash. Both are one byte as they are and six bits in the Huffman code, so lengths, table sizes and indices
 * stay as the client counts them, and nothing needs to be known of the header tables. The same is done with
 * the other characters that are refused, where one of the same length is not. All else passes as it came.
 */
export class AuthorityRewriter {
  readonly #huffman = createHuffmanTables();
  #state: State = { t: "preface", matched: 0 };

  /** The next bytes, cut anywhere, and what to hand on for them; rewritten in place. At most one frame is held back. */
  push(chunk: Uint8Array): Uint8Array[] {
    const out: Uint8Array[] = [];
    let at = 0;
    while (at < chunk.length) {
      const rest = chunk.subarray(at);
      at += this.#take(rest, out);
    }
    return out;
  }

  /** What was held back: a connection that ends inside a frame is the server's to judge. */
  end(): Uint8Array[] {
    return this.#state.t === "headers" ? [this.#state.payload.subarray(0, this.#state.filled)] : [];
  }

  /** Consumes from the beginning of `bytes`, at least one, and answers how many. */
  #take(bytes: Uint8Array, out: Uint8Array[]): number {
    const state = this.#state;
    switch (state.t) {
      case "preface":
        return this.#onPreface(state.matched, bytes, out);
      case "frame":
        return this.#onFrameHeader(state.header, bytes, out);
      case "headers":
        return this.#onHeaders(state, bytes, out);
      case "payload": {
        const length = Math.min(state.left, bytes.length);
        out.push(bytes.subarray(0, length));
        this.#state = state.left === length ? { t: "frame", header: [] } : { t: "payload", left: state.left - length };
        return length;
      }
      case "opaque":
        out.push(bytes);
        return bytes.length;
    }
  }

  /** Whatever does not begin as HTTP/2 does is none of our business. */
  #onPreface(matched: number, bytes: Uint8Array, out: Uint8Array[]): number {
    let length = 0;
    while (length < bytes.length && matched + length < preface.length) {
      if (bytes[length] !== preface.charCodeAt(matched + length)) {
        this.#state = { t: "opaque" };
        out.push(bytes);
        return bytes.length;
      }
      length++;
    }
    out.push(bytes.subarray(0, length));
    this.#state =
      matched + length === preface.length ? { t: "frame", header: [] } : { t: "preface", matched: matched + length };
    return length;
  }

  #onFrameHeader(known: readonly number[], bytes: Uint8Array, out: Uint8Array[]): number {
    const part = bytes.subarray(0, frameHeaderBytes - known.length);
    const header = [...known, ...part];
    out.push(part);
    if (header.length < frameHeaderBytes) {
      this.#state = { t: "frame", header };
      return part.length;
    }
    const length = readUint32(new Uint8Array(header), 0) >>> 8;
    const [, , , type, frameFlags = 0] = header;
    if (length === 0) this.#state = { t: "frame", header: [] };
    // Longer than the server allows: it will say so itself.
    else if (type !== FrameType.headers || length > initialFrameBytes) this.#state = { t: "payload", left: length };
    else this.#state = { t: "headers", flags: frameFlags, payload: new Uint8Array(length), filled: 0 };
    return part.length;
  }

  #onHeaders(state: HeadersState, bytes: Uint8Array, out: Uint8Array[]): number {
    const part = bytes.subarray(0, state.payload.length - state.filled);
    state.payload.set(part, state.filled);
    state.filled += part.length;
    if (state.filled < state.payload.length) return part.length;
    rewriteAuthority(blockOf(state.payload, state.flags), this.#huffman);
    out.push(state.payload);
    this.#state = { t: "frame", header: [] };
    return part.length;
  }
}

/** The payload of a HEADERS frame as it gathers: the header may stand in any part of it. */
interface HeadersState {
  readonly t: "headers";
  readonly flags: number;
  readonly payload: Uint8Array;
  filled: number;
}

type State =
  | { readonly t: "preface"; readonly matched: number }
  | { readonly t: "frame"; readonly header: readonly number[] }
  | HeadersState
  | { readonly t: "payload"; readonly left: number }
  /** Not HTTP/2: passed on as it comes, to the end. */
  | { readonly t: "opaque" };

/** The header block inside of a HEADERS payload (RFC 9113, section 6.2). */
function blockOf(payload: Uint8Array, frameFlags: number): Uint8Array {
  const padded = (frameFlags & flags.padded) !== 0;
  const from = (padded ? 1 : 0) + (frameFlags & flags.priority ? 5 : 0);
  return payload.subarray(from, payload.length - (padded ? (payload[0] ?? 0) : 0));
}
