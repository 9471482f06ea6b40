import { limits } from "../../limits.ts";
import {
  encodeFrame,
  encodeGoaway,
  encodeReset,
  encodeSettings,
  encodeWindowUpdate,
  type Frame,
  FrameType,
  flags,
  initialWindowBytes,
  maxWindowBytes,
  preface,
  readUint32,
  settingIds,
  unpadded,
} from "../../rpc/h2-frames.ts";
import { httpStatusBlock } from "./answer.ts";
import { CallQueue, type TurnTaker } from "./call-queue.ts";
import { broken, type Fault, H2Code, wrongSize } from "./fault.ts";
import { FrameReader } from "./frame-reader.ts";
import { bytesOf, HeaderGatherer, type HeaderList } from "./header-gatherer.ts";
import { Outbox } from "./outbox.ts";
import { readHead } from "./request-head.ts";
import { HeldBytes, type RequestMemory } from "./request-memory.ts";
import { type CallListener, type ServerCall, ServerStream, type StreamOwner } from "./server-stream.ts";

export interface ConnectionOptions {
  /** Called for each call when its headers have been read. */
  open(call: ServerCall): CallListener;
  readonly memory: RequestMemory;
  /** The queue in which calls wait for their turn. */
  readonly turns: TurnTaker;
  /** Called when there may be something to `take`. */
  wake(): void;
}

type State =
  /** Waits for the preface, of which so many bytes have come. */
  | { readonly t: "preface"; readonly matched: number }
  /** The first frame is to be SETTINGS. */
  | { readonly t: "settings" }
  | { readonly t: "open" }
  /** Closed by a fault, or because the peer has gone. */
  | { readonly t: "closed" };

/**
 * The server's side of an HTTP/2 connection that carries gRPC calls (RFC 9113; grpc/grpc, doc/PROTOCOL-HTTP2.md),
 * without any input or output, like `H2Call` for the client: the caller passes what arrives to `receive` and sends what
 * `take` gives. Violations of the protocol or a bound end a stream by RST_STREAM or the connection by GOAWAY; nothing
 * is thrown.
 */
export class ServerConnection implements StreamOwner {
  readonly #options: ConnectionOptions;
  readonly #reader = new FrameReader();
  readonly #headers: HeaderGatherer;
  readonly #outbox: Outbox;
  readonly #queue: CallQueue;
  readonly #streams = new Map<number, ServerStream>();
  #state: State = { t: "preface", matched: 0 };
  #leaving = false;
  /** Calls of which the peer or the handler is not done; a reset stream counts until its handler has ended. */
  #calls = 0;
  #lastStream = 0;
  #requests = 0;
  /** Received bytes of DATA that no WINDOW_UPDATE has returned yet; memory is bounded by other means. */
  #consumed = 0;
  #controlFrames = 0;
  /** WINDOW_UPDATEs that are allowed for sent frames: one for the stream and one for the connection per frame. */
  #updates = 0;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.#headers = new HeaderGatherer(options.memory);
    this.#queue = new CallQueue(options.turns);
    this.#outbox = new Outbox([
      encodeSettings([
        [settingIds.maxConcurrentStreams, limits.concurrentStreams],
        [settingIds.initialWindowSize, limits.receiveWindowBytes],
        [settingIds.maxHeaderListSize, limits.headerBlockBytes],
      ]),
      encodeWindowUpdate(0, limits.receiveWindowBytes - initialWindowBytes),
    ]);
  }

  /** Whether a handler is running, or a call waits for its turn. */
  get isHandling(): boolean {
    return this.#queue.isHandling;
  }

  /** Its share of `RequestMemory`. */
  get heldBytes(): number {
    let bytes = this.#headers.heldBytes;
    for (const stream of this.#streams.values()) bytes += stream.heldBytes;
    return bytes;
  }

  /** The part of that for incomplete requests. */
  get halfBytes(): number {
    return this.#half().reduce((bytes, stream) => bytes + stream.heldBytes, 0);
  }

  /** How many complete requests have come. */
  get requests(): number {
    return this.#requests;
  }

  /** Whether nothing will follow what `take` gives now. */
  get isOver(): boolean {
    return this.#state.t === "closed" || this.isLeft;
  }

  /** Whether it is over without a fault: all calls are answered, and GOAWAY tells the peer to open no more. */
  get isLeft(): boolean {
    return this.#state.t !== "closed" && this.#leaving && this.#streams.size === 0;
  }

  /** Whether sending can wait until the peer's call is answered, which saves a packet and a wake-up of the peer. */
  get canWait(): boolean {
    return this.#outbox.onlyOpens && this.isHandling;
  }

  /** Bytes from the peer, cut anywhere. The array may be reused afterwards. */
  receive(chunk: Uint8Array): void {
    const rest = this.#state.t === "preface" ? this.#onPreface(chunk, this.#state.matched) : chunk;
    this.#reader.push(rest);
    while (this.#state.t === "settings" || this.#state.t === "open") {
      const frame = this.#reader.next();
      if (frame === undefined) return;
      if (frame === "too long")
        this.#fail({ code: H2Code.frameSizeError, is: "a longer frame came, wanted 16384 bytes" });
      else this.#fail(this.#onFrame(frame));
    }
  }

  /** What is to be sent now, in one piece; `undefined` when there is nothing more for now. */
  take(): Uint8Array | undefined {
    const { waiting } = this.#outbox;
    const bytes = this.#outbox.take((stream) => {
      // The rest of the request is not needed (section 8.1).
      if (!stream.requestEnded) this.#outbox.push(encodeReset(stream.id, H2Code.noError));
      this.#controlFrames = 0;
      this.#close(stream);
    });
    if (this.#outbox.waiting < waiting) this.#controlFrames = 0;
    return bytes.length === 0 ? undefined : bytes;
  }

  /** Takes no more calls, and tells the peer; open ones continue. */
  leave(): void {
    if (this.#leaving || this.#state.t === "closed") return;
    this.#leaving = true;
    this.#outbox.push(encodeGoaway(this.#lastStream, H2Code.noError, ""));
  }

  /** Drops incomplete requests; running calls continue. */
  refuseHalf(): void {
    for (const stream of this.#half()) this.#fail(this.#reset(stream.id, H2Code.enhanceYourCalm));
    this.#options.wake();
  }

  /** To be called periodically: restarts the counting of frames. */
  refresh(): void {
    this.#controlFrames = 0;
  }

  /** The peer has gone, or is to go. */
  ended(): void {
    this.#state = { t: "closed" };
    this.#queue.close();
    this.#headers.close();
    for (const stream of [...this.#streams.values()]) this.#close(stream);
  }

  wrote(stream: ServerStream, bytes: number): void {
    this.#outbox.wrote(stream, bytes);
    const { waiting } = this.#outbox;
    if (waiting > limits.answerBytesHeld)
      this.#fail({ code: H2Code.enhanceYourCalm, is: `${waiting} bytes of answers wait` });
    this.#options.wake();
  }

  whole(stream: ServerStream): void {
    this.#queue.whole(stream);
  }

  left(stream: ServerStream): void {
    this.#calls--;
    this.#queue.left(stream);
  }

  blockOf(block: Uint8Array): Uint8Array {
    return this.#outbox.blockOf(block);
  }

  #fail(fault: Fault | undefined): void {
    if (fault === undefined || this.#state.t === "closed") return;
    this.#outbox.push(encodeGoaway(this.#lastStream, fault.code, fault.is));
    this.ended();
  }

  #onPreface(chunk: Uint8Array, matched: number): Uint8Array {
    const length = Math.min(chunk.length, preface.length - matched);
    for (let i = 0; i < length; i++) {
      if (chunk[i] === preface.charCodeAt(matched + i)) continue;
      this.#fail({ code: H2Code.protocolError, is: "another protocol came, wanted HTTP/2" });
      return nothing;
    }
    this.#state = matched + length < preface.length ? { t: "preface", matched: matched + length } : { t: "settings" };
    return chunk.subarray(length);
  }

  #onFrame(frame: Frame): Fault | undefined {
    if (this.#state.t === "settings" && (frame.type !== FrameType.settings || frame.flags & flags.ack))
      return broken("another frame than SETTINGS came first");
    if (this.#headers.isInterruptedBy(frame)) return broken("headers were interrupted");
    switch (frame.type) {
      case FrameType.data:
        return this.#onData(frame);
      case FrameType.headers:
      case FrameType.continuation: {
        if (frame.stream % 2 === 0) return broken(`headers came on stream ${frame.stream}`);
        const list = this.#headers.push(frame);
        return list === undefined || "code" in list ? list : this.#onHeaders(list);
      }
      case FrameType.rstStream:
        return this.#onReset(frame);
      case FrameType.settings:
        return this.#onSettings(frame);
      case FrameType.ping:
        return this.#onPing(frame);
      case FrameType.goaway:
        // The peer opens no more calls; it closes the connection itself once it has its answers.
        return frame.stream === 0 ? this.#count() : broken("GOAWAY came on a stream");
      case FrameType.windowUpdate:
        return this.#onWindowUpdate(frame);
      case FrameType.pushPromise:
        return broken("a client pushed");
      default:
        // PRIORITY is deprecated; unknown types are to be ignored (section 4.1).
        return this.#count();
    }
  }

  /** Counts a frame that costs work and serves no call. */
  #count(): Fault | undefined {
    this.#controlFrames++;
    if (this.#controlFrames <= limits.controlFrames) return undefined;
    const is = `more than ${limits.controlFrames} frames came that carry nothing on`;
    return { code: H2Code.enhanceYourCalm, is };
  }

  /** A peer may send an update for each frame, and one write may contain thousands of small ones. */
  #countUpdate(): Fault | undefined {
    if (this.#updates >= 2 * this.#outbox.frames) return this.#count();
    this.#updates++;
    return undefined;
  }

  #onHeaders({ stream: id, endStream, headers }: HeaderList): Fault | undefined {
    const open = this.#streams.get(id);
    if (open !== undefined) return this.#onTrailers(open, endStream);
    // For a call that is over, or one that came too late.
    if (id <= this.#lastStream || this.#leaving) return this.#count();
    this.#lastStream = id;
    if (this.#calls >= limits.concurrentStreams) return this.#reset(id, H2Code.refusedStream);
    const outcome = readHead(headers);
    if (outcome.t === "malformed") return this.#reset(id, H2Code.protocolError);
    if (outcome.t === "http") {
      const block = this.blockOf(httpStatusBlock(outcome.status));
      this.#outbox.push(encodeFrame(FrameType.headers, flags.endHeaders | flags.endStream, id, block));
      return endStream ? this.#count() : this.#reset(id, H2Code.noError);
    }
    const held = new HeldBytes(this.#options.memory);
    const hasRoom = held.take(bytesOf(headers));
    // This same connection may have been closed to make room.
    if (this.isOver) held.close();
    if (!hasRoom || this.isOver) return this.#reset(id, H2Code.refusedStream);
    const stream = new ServerStream(id, outcome.head, this.#outbox.peer.windowBytes, this, held);
    this.#streams.set(id, stream);
    this.#calls++;
    if (outcome.t === "call") stream.listener = this.#options.open(stream);
    else stream.refuse(outcome.problem);
    if (endStream) this.#endRequest(stream);
    return undefined;
  }

  #onTrailers(stream: ServerStream, endStream: boolean): Fault | undefined {
    if (stream.requestEnded) return this.#reset(stream.id, H2Code.streamClosed);
    if (!endStream) return this.#reset(stream.id, H2Code.protocolError);
    this.#endRequest(stream);
    return undefined;
  }

  #onData(frame: Frame): Fault | undefined {
    if (this.#isIdle(frame.stream)) return broken(`DATA came on stream ${frame.stream}`);
    const { length } = frame.payload;
    this.#consumed += length;
    if (this.#consumed >= limits.receiveWindowBytes / 2) {
      // In large steps, since each update is a packet (section 6.9). Padding counts as well.
      this.#outbox.push(encodeWindowUpdate(0, this.#consumed));
      this.#consumed = 0;
    }
    const part = unpadded(frame, 0);
    if (part === undefined) return broken("DATA came with more padding than payload");
    const stream = this.#streams.get(frame.stream);
    // For a call that is over, which the client may not know yet.
    if (stream === undefined) return part.length === 0 ? this.#count() : undefined;
    return this.#onPart(stream, part, length, (frame.flags & flags.endStream) !== 0);
  }

  #onPart(stream: ServerStream, part: Uint8Array, length: number, endStream: boolean): Fault | undefined {
    if (stream.requestEnded) return this.#reset(stream.id, H2Code.streamClosed);
    stream.receive(part);
    stream.consumed += length;
    if (endStream) {
      this.#endRequest(stream);
      return undefined;
    }
    if (stream.consumed >= limits.receiveWindowBytes / 2) {
      this.#outbox.push(encodeWindowUpdate(stream.id, stream.consumed));
      stream.consumed = 0;
    }
    if (part.length === 0) return this.#count();
    this.#controlFrames = 0;
    return undefined;
  }

  #endRequest(stream: ServerStream): void {
    this.#requests++;
    stream.endRequest();
  }

  #onReset(frame: Frame): Fault | undefined {
    if (frame.payload.length !== 4) return wrongSize("RST_STREAM", frame);
    if (this.#isIdle(frame.stream)) return broken(`RST_STREAM came on stream ${frame.stream}`);
    this.#close(this.#streams.get(frame.stream));
    return this.#count();
  }

  #onSettings(frame: Frame): Fault | undefined {
    if (frame.stream !== 0) return broken("SETTINGS came on a stream");
    const ack = (frame.flags & flags.ack) !== 0;
    if (frame.payload.length % 6 !== 0 || (ack && frame.payload.length > 0)) return wrongSize("SETTINGS", frame);
    if (ack) return this.#count();
    const opens = this.#state.t === "settings";
    if (opens) this.#state = { t: "open" };
    const fault = this.#outbox.settings(frame.payload, this.#streams.values(), opens);
    for (const stream of this.#streams.values()) this.#queue.widened(stream);
    return fault ?? this.#count();
  }

  #onPing(frame: Frame): Fault | undefined {
    if (frame.stream !== 0) return broken("PING came on a stream");
    if (frame.payload.length !== 8) return wrongSize("PING", frame);
    if (!(frame.flags & flags.ack)) this.#outbox.push(encodeFrame(FrameType.ping, flags.ack, 0, frame.payload));
    return this.#count();
  }

  #onWindowUpdate(frame: Frame): Fault | undefined {
    if (frame.payload.length !== 4) return wrongSize("WINDOW_UPDATE", frame);
    const more = readUint32(frame.payload, 0) & maxWindowBytes;
    if (frame.stream === 0) {
      if (more === 0) return broken("WINDOW_UPDATE came with 0 bytes");
      return this.#outbox.widen(more) ?? this.#countUpdate();
    }
    if (this.#isIdle(frame.stream)) return broken(`WINDOW_UPDATE came on stream ${frame.stream}`);
    const stream = this.#streams.get(frame.stream);
    if (stream === undefined) return this.#countUpdate();
    if (more === 0) return this.#reset(stream.id, H2Code.protocolError);
    if (!this.#outbox.widenStream(stream, more)) return this.#reset(stream.id, H2Code.flowControlError);
    this.#queue.widened(stream);
    return this.#countUpdate();
  }

  /** Whether a stream has not been opened yet. */
  #isIdle(stream: number): boolean {
    return stream === 0 || stream % 2 === 0 || (stream > this.#lastStream && !this.#leaving);
  }

  #reset(id: number, code: H2Code): Fault | undefined {
    this.#outbox.push(encodeReset(id, code));
    this.#close(this.#streams.get(id));
    return this.#count();
  }

  #half(): readonly ServerStream[] {
    return [...this.#streams.values()].filter((stream) => !stream.requestEnded);
  }

  #close(stream: ServerStream | undefined): void {
    if (stream === undefined) return;
    this.#outbox.forget(stream);
    this.#streams.delete(stream.id);
    stream.close();
  }
}

const nothing = new Uint8Array(0);
