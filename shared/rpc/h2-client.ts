import { limits } from "../limits.ts";
import { errorOfHttp, errorOfTrailers, headerOf, resetOf } from "./grpc-status.ts";
import {
  concat,
  encodeFrame,
  encodeSettings,
  encodeWindowUpdate,
  type Frame,
  FrameType,
  flags,
  frameHeaderBytes,
  frameLength,
  initialFrameBytes,
  initialWindowBytes,
  maxWindowBytes,
  preface,
  readFrame,
  readUint32,
  settingIds,
  unpadded,
} from "./h2-frames.ts";
import { encodeHeaders, type Header, HpackDecoder, HpackError } from "./hpack.ts";
import { MessageReader, prefixed } from "./message-frame.ts";
import { RequestSender } from "./request-sender.ts";
import { broken, GrpcCode, type Problem, RpcError } from "./rpc-error.ts";

export type Outcome =
  | { readonly t: "pending" }
  /** The response message. */
  | { readonly t: "answered"; readonly message: Uint8Array }
  | { readonly t: "failed"; readonly error: RpcError };

/** The one stream of the connection. */
const callStream = 1;

/** A header block that has begun and goes on in CONTINUATION frames. */
interface OpenBlock {
  readonly endStream: boolean;
  readonly parts: Uint8Array[];
  bytes: number;
}

/**
 * One unary gRPC call over HTTP/2 (RFC 9113; grpc/grpc, doc/PROTOCOL-HTTP2.md), without any input or output: the caller
 * sends what `take` gives, passes what arrives to `receive`, and reads `outcome`. Invalid input leads to an outcome and
 * is never thrown.
 */
export class H2Call {
  readonly #what: string;
  readonly #hpack = new HpackDecoder(limits.headerTableBytes, limits.headerBlockBytes);
  readonly #response = new MessageReader(limits.messageBytes, "answer");
  readonly #request: RequestSender;
  #outcome: Outcome = { t: "pending" };
  #out: Uint8Array[] = [];
  /** The received part of an incomplete frame. */
  #partial: Uint8Array = new Uint8Array(0);
  #settled = false;
  #controlFrames = 0;
  /** Received bytes of DATA that no WINDOW_UPDATE has returned yet. */
  #consumed = 0;
  #block: OpenBlock | undefined;
  #headersSeen = false;
  #goaway = "";

  /**
   * @param headers the request's, pseudo-headers first
   * @param what `Cannot ask the agent at …`, the beginning of every error
   */
  constructor(headers: readonly Header[], request: Uint8Array, what: string) {
    this.#what = what;
    this.#request = new RequestSender(callStream, prefixed(request));
    const block = encodeHeaders(headers);
    if (block.length > initialFrameBytes) {
      const is = `the request's headers are ${block.length} bytes long, wanted at most ${initialFrameBytes}`;
      this.#fail({ code: GrpcCode.invalidArgument, is });
      return;
    }
    this.#out.push(
      new TextEncoder().encode(preface),
      encodeSettings([
        [settingIds.enablePush, 0],
        [settingIds.initialWindowSize, limits.receiveWindowBytes],
        [settingIds.maxHeaderListSize, limits.headerBlockBytes],
      ]),
      encodeWindowUpdate(0, limits.receiveWindowBytes - initialWindowBytes),
      encodeFrame(FrameType.headers, flags.endHeaders, callStream, block),
    );
  }

  get outcome(): Outcome {
    return this.#outcome;
  }

  /** What is to be sent now, in one piece; empty when there is nothing. */
  take(): Uint8Array {
    if (this.#outcome.t !== "pending") return new Uint8Array(0);
    const bytes = concat([...this.#out, ...this.#request.frames()]);
    this.#out = [];
    return bytes;
  }

  /** Bytes from the server, cut anywhere. The array may be reused afterwards. */
  receive(chunk: Uint8Array): void {
    const bytes = this.#partial.length === 0 ? chunk : concat([this.#partial, chunk]);
    let at = 0;
    while (this.#outcome.t === "pending") {
      if (!this.#settled && !beginsWithSettings(bytes)) this.#fail(foreign(bytes));
      if (frameLength(bytes, at) > initialFrameBytes) this.#fail(broken(`a frame of ${frameLength(bytes, at)} bytes`));
      const frame = readFrame(bytes, at);
      if (this.#outcome.t !== "pending" || frame === undefined) break;
      at += frameHeaderBytes + frame.payload.length;
      this.#settled = true;
      this.#fail(this.#onFrame(frame));
    }
    // A copy: the caller's array, and every view of it, may change once this returns.
    this.#partial = new Uint8Array(bytes.subarray(at));
  }

  /** The server closed the connection, or it broke. */
  ended(how = "the server closed the connection before it answered"): void {
    this.#fail({ code: GrpcCode.unavailable, is: `${how}${this.#goaway}` });
  }

  #fail(problem: Problem | undefined): void {
    if (problem === undefined || this.#outcome.t !== "pending") return;
    this.#outcome = { t: "failed", error: new RpcError(problem.code, `${this.#what}: ${problem.is}`) };
  }

  #onFrame(frame: Frame): Problem | undefined {
    if (this.#block !== undefined && (frame.type !== FrameType.continuation || frame.stream !== callStream))
      return broken("a header block that is interrupted");
    switch (frame.type) {
      case FrameType.data:
        return this.#onData(frame);
      case FrameType.headers:
        return this.#onHeaders(frame);
      case FrameType.continuation:
        return this.#onContinuation(frame);
      case FrameType.rstStream:
        return onReset(frame);
      case FrameType.settings:
        return this.#onSettings(frame);
      case FrameType.ping:
        return this.#onPing(frame);
      case FrameType.goaway:
        return this.#onGoaway(frame);
      case FrameType.windowUpdate:
        return this.#request.windowUpdate(frame.stream, frame.payload);
      case FrameType.pushPromise:
        return broken("a push, which the settings forbid");
      default:
        // PRIORITY does not matter with one stream; unknown types are to be ignored (section 4.1).
        return undefined;
    }
  }

  #onData(frame: Frame): Problem | undefined {
    if (frame.stream !== callStream) return broken(`DATA on stream ${frame.stream}`);
    if (!this.#headersSeen) return broken("DATA before HEADERS");
    const payload = unpadded(frame, 0);
    if (payload === undefined) return broken("more padding than payload");
    const problem = this.#response.push(payload);
    if (problem !== undefined) return problem;
    if (frame.flags & flags.endStream)
      return { code: GrpcCode.internal, is: "the answer has no trailers, wanted a status" };
    // In large steps, since each update is a packet (section 6.9). Padding counts as well.
    this.#consumed += frame.payload.length;
    if (this.#consumed >= limits.receiveWindowBytes / 2) {
      this.#out.push(encodeWindowUpdate(0, this.#consumed), encodeWindowUpdate(callStream, this.#consumed));
      this.#consumed = 0;
    }
    return undefined;
  }

  #onHeaders(frame: Frame): Problem | undefined {
    if (frame.stream !== callStream) return broken(`HEADERS on stream ${frame.stream}`);
    const part = unpadded(frame, frame.flags & flags.priority ? 5 : 0);
    if (part === undefined) return broken("more padding than payload");
    const block: OpenBlock = { parts: [], bytes: 0, endStream: (frame.flags & flags.endStream) !== 0 };
    return this.#extend(block, part, frame.flags);
  }

  #onContinuation(frame: Frame): Problem | undefined {
    if (this.#block === undefined) return broken("CONTINUATION without HEADERS");
    const { payload } = frame;
    // Empty frames would add nothing to the bound and could come without end.
    if (payload.length === 0 && !(frame.flags & flags.endHeaders)) return broken("an empty CONTINUATION");
    return this.#extend(this.#block, payload, frame.flags);
  }

  #extend(block: OpenBlock, part: Uint8Array, frameFlags: number): Problem | undefined {
    block.bytes += part.length;
    if (block.bytes > limits.headerBlockBytes) {
      const is = `the answer's headers are longer than ${limits.headerBlockBytes} bytes`;
      return { code: GrpcCode.resourceExhausted, is };
    }
    // A copy, for it may wait for the next chunk.
    block.parts.push(new Uint8Array(part));
    this.#block = block;
    if (!(frameFlags & flags.endHeaders)) return undefined;
    this.#block = undefined;
    try {
      return this.#onHeaderList(this.#hpack.decode(concat(block.parts)), block.endStream);
    } catch (caught) {
      if (!(caught instanceof HpackError)) throw caught;
      return { code: GrpcCode.internal, is: `the answer's headers cannot be read: ${caught.message}` };
    }
  }

  #onHeaderList(headers: readonly Header[], endStream: boolean): Problem | undefined {
    // Trailers, or an answer that consists of nothing else.
    if (endStream) return this.#finish(headers);
    if (this.#headersSeen) return broken("trailers that do not end the stream");
    const status = headerOf(headers, ":status") ?? "";
    if (status.length === 3 && status.startsWith("1")) return undefined;
    const type = headerOf(headers, "content-type") ?? "";
    if (status !== "200" || !type.startsWith("application/grpc")) return errorOfHttp(headers);
    this.#headersSeen = true;
    return undefined;
  }

  #finish(headers: readonly Header[]): Problem | undefined {
    const error = errorOfTrailers(headers);
    if (error instanceof RpcError) this.#outcome = { t: "failed", error };
    if (error !== undefined) return error instanceof RpcError ? undefined : error;
    const message = this.#response.message();
    if (message === undefined) return { code: GrpcCode.internal, is: "the answer holds no whole message" };
    this.#outcome = { t: "answered", message };
    return undefined;
  }

  #onSettings(frame: Frame): Problem | undefined {
    const ack = (frame.flags & flags.ack) !== 0;
    if (frame.stream !== 0 || frame.payload.length % 6 !== 0 || (ack && frame.payload.length > 0))
      return broken("malformed SETTINGS");
    if (ack) return undefined;
    const problem = this.#request.settings(frame.payload);
    return problem ?? this.#acknowledge(FrameType.settings, new Uint8Array(0));
  }

  #onPing(frame: Frame): Problem | undefined {
    if (frame.stream !== 0 || frame.payload.length !== 8) return broken("a malformed PING");
    return frame.flags & flags.ack ? undefined : this.#acknowledge(FrameType.ping, frame.payload);
  }

  #acknowledge(type: number, payload: Uint8Array): Problem | undefined {
    this.#controlFrames++;
    if (this.#controlFrames > limits.controlFrames) {
      const is = `the server sent more than ${limits.controlFrames} SETTINGS and PING frames`;
      return { code: GrpcCode.resourceExhausted, is };
    }
    this.#out.push(encodeFrame(type, flags.ack, 0, payload));
    return undefined;
  }

  /** A server that shuts down still finishes the streams up to the one it names (section 6.8). */
  #onGoaway(frame: Frame): Problem | undefined {
    if (frame.stream !== 0 || frame.payload.length < 8) return broken("a malformed GOAWAY");
    const [name] = resetOf(readUint32(frame.payload, 4));
    const reason = new TextDecoder().decode(frame.payload.subarray(8, 8 + 128));
    const goaway = `GOAWAY ${name}${reason === "" ? "" : ` "${reason}"`}`;
    this.#goaway = ` after ${goaway}`;
    const lastStream = readUint32(frame.payload, 0) & maxWindowBytes;
    if (lastStream >= callStream) return undefined;
    return { code: GrpcCode.unavailable, is: `the server refused the call with ${goaway}` };
  }
}

/** A server's first frame is SETTINGS (section 3.4). */
const beginsWithSettings = (bytes: Uint8Array): boolean =>
  bytes.length < frameHeaderBytes || (bytes[3] === FrameType.settings && ((bytes[4] ?? 0) & flags.ack) === 0);

/** The server speaks another protocol; its first bytes are quoted because they may say which. */
function foreign(bytes: Uint8Array): Problem {
  let shown = "";
  for (const byte of bytes.subarray(0, 16)) shown += byte >= 32 && byte < 127 ? String.fromCharCode(byte) : ".";
  return { code: GrpcCode.internal, is: `the server's answer begins with "${shown}", wanted HTTP/2` };
}

function onReset(frame: Frame): Problem {
  if (frame.stream !== callStream || frame.payload.length !== 4) return broken("a malformed RST_STREAM");
  const [name, code] = resetOf(readUint32(frame.payload, 0));
  return { code, is: `the server reset the stream with ${name}` };
}
