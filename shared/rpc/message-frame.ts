import { readUint32, writeUint32 } from "./h2-frames.ts";
import type { Problem } from "./rpc-error.ts";
import { GrpcCode } from "./rpc-error.ts";

/** gRPC's message framing (grpc/grpc, doc/PROTOCOL-HTTP2.md, "Length-Prefixed-Message"). */
export const messagePrefixBytes = 5;

/** The message as it goes into DATA frames, not compressed. */
export function prefixed(message: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(messagePrefixBytes + message.length);
  writeUint32(bytes, 1, message.length);
  bytes.set(message, messagePrefixBytes);
  return bytes;
}

/** The role of a message, in error messages. */
export type MessageRole = "answer" | "request";

/** Assembles the one message of a unary call. Memory grows with what has arrived, not with what a prefix claims. */
export class MessageReader {
  readonly #maxBytes: number;
  readonly #role: MessageRole;
  #bytes = new Uint8Array(512);
  #length = 0;

  constructor(maxBytes: number, role: MessageRole) {
    this.#maxBytes = maxBytes;
    this.#role = role;
  }

  /** The next part, copied. Answers what is wrong, if something is. */
  push(part: Uint8Array): Problem | undefined {
    if (part.length === 0) return undefined;
    const length = this.#length + part.length;
    if (length > this.#bytes.length) {
      const grown = new Uint8Array(Math.max(length, Math.min(2 * length, messagePrefixBytes + this.#maxBytes)));
      grown.set(this.#bytes.subarray(0, this.#length));
      this.#bytes = grown;
    }
    this.#bytes.set(part, this.#length);
    this.#length = length;
    if (this.#bytes[0] !== 0) {
      // By doc/compression.md a compressed request is UNIMPLEMENTED, and a compressed answer is an error of the server.
      const code = this.#role === "request" ? GrpcCode.unimplemented : GrpcCode.internal;
      return { code, is: `the ${this.#role} is compressed, which was not offered` };
    }
    if (length < messagePrefixBytes) return undefined;
    const wanted = readUint32(this.#bytes, 1);
    if (wanted > this.#maxBytes) {
      const is = `the ${this.#role} is ${wanted} bytes long, wanted at most ${this.#maxBytes}`;
      return { code: GrpcCode.resourceExhausted, is };
    }
    if (length > messagePrefixBytes + wanted)
      return { code: GrpcCode.internal, is: `the ${this.#role} goes on behind its message` };
    return undefined;
  }

  /** The message once it is whole. */
  message(): Uint8Array | undefined {
    if (this.#length < messagePrefixBytes || this.#length < messagePrefixBytes + readUint32(this.#bytes, 1))
      return undefined;
    return this.#bytes.subarray(messagePrefixBytes, this.#length);
  }
}
