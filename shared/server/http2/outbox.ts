import { limits } from "../../limits.ts";
import {
  concat,
  encodeFrame,
  FrameType,
  flags,
  initialFrameBytes,
  initialWindowBytes,
  maxFrameBytes,
  maxWindowBytes,
  readUint32,
  settingIds,
} from "../../rpc/h2-frames.ts";
import { type Fault, H2Code } from "./fault.ts";
import type { ServerStream } from "./server-stream.ts";

/** What a connection has to send: its own frames first, then the answers, as far as the peer's windows allow. */
export class Outbox {
  readonly peer = new PeerSettings();
  #control: Uint8Array[];
  /** How many frames at the beginning of `#control` only open the connection. */
  #opening: number;
  /** Streams with something to send that only the connection's window can delay, the longest waiting first. */
  readonly #ready = new Set<ServerStream>();
  #window: number = initialWindowBytes;
  #waiting = 0;
  #frames = 0;

  /** @param opening what the connection begins with */
  constructor(opening: readonly Uint8Array[]) {
    this.#control = [...opening];
    this.#opening = opening.length;
  }

  /** Bytes of messages that wait, over all streams. */
  get waiting(): number {
    return this.#waiting;
  }

  /** How many frames of answers have gone out. */
  get frames(): number {
    return this.#frames;
  }

  /** Whether the frames to send only open the connection. */
  get onlyOpens(): boolean {
    return this.#opening > 0 && this.#control.length === this.#opening && this.#ready.size === 0;
  }

  push(frame: Uint8Array): void {
    this.#control.push(frame);
  }

  /** A stream has more to send, with so many bytes of messages. */
  wrote(stream: ServerStream, bytes: number): void {
    this.#waiting += bytes;
    this.#ready.add(stream);
  }

  /** A stream is over, whether everything was sent or not. */
  forget(stream: ServerStream): void {
    this.#waiting -= stream.answer.waiting;
    this.#ready.delete(stream);
  }

  /** What may be sent now, in one piece; empty when there is nothing more for now. `sent` is told of ended streams. */
  take(sent: (stream: ServerStream) => void): Uint8Array {
    const parts = this.#control;
    this.#control = [];
    this.#opening = 0;
    let most: number = limits.writeBytes;
    const control = parts.length;
    for (const stream of [...this.#ready]) {
      const crowded = !stream.hasRoom;
      const bytes = stream.answer.frames(parts, Math.min(most, this.#window), this.peer.frameBytes);
      this.#window -= bytes;
      this.#waiting -= bytes;
      most -= bytes;
      // Moves this stream behind the others.
      this.#ready.delete(stream);
      if (stream.answer.ended) sent(stream);
      else if (stream.answer.ready) this.#ready.add(stream);
      if (crowded && stream.hasRoom) stream.listener?.room();
      if (most <= 0) break;
    }
    this.#frames += parts.length - control;
    return parts.length === 1 && parts[0] !== undefined ? parts[0] : concat(parts);
  }

  /** The peer has widened the connection's window. */
  widen(more: number): Fault | undefined {
    this.#window += more;
    return this.#window > maxWindowBytes ? beyondWindow : undefined;
  }

  /** The peer has widened this stream's window. @returns whether that is allowed */
  widenStream(stream: ServerStream, more: number): boolean {
    stream.answer.window += more;
    if (stream.answer.ready) this.#ready.add(stream);
    return stream.answer.window <= maxWindowBytes;
  }

  /** Applies the peer's settings, also to open streams, and confirms them. */
  settings(payload: Uint8Array, streams: Iterable<ServerStream>, opens: boolean): Fault | undefined {
    const before = this.peer.windowBytes;
    const fault = this.peer.apply(payload);
    if (fault !== undefined) return fault;
    const more = this.peer.windowBytes - before;
    if (more !== 0) for (const stream of streams) if (!this.widenStream(stream, more)) return beyondWindow;
    this.#control.push(encodeFrame(FrameType.settings, flags.ack, 0, new Uint8Array(0)));
    if (opens) this.#opening = this.#control.length;
    return undefined;
  }

  /** The header block as it has to be sent: the first one after the peer's table has shrunk needs a size update. */
  blockOf(block: Uint8Array): Uint8Array {
    if (!this.peer.tableShrunk) return block;
    this.peer.tableShrunk = false;
    return concat([tableOfNothing, block]);
  }
}

/** A size update to 0 bytes (RFC 7541, section 6.3), since our table never holds anything. */
const tableOfNothing = new Uint8Array([0x20]);

const beyondWindow: Fault = { code: H2Code.flowControlError, is: "a window beyond 2^31 bytes came" };

/** The peer's settings (RFC 9113, section 6.5.2) that concern what we send. */
class PeerSettings {
  frameBytes: number = initialFrameBytes;
  /** The initial window of new streams. */
  windowBytes: number = initialWindowBytes;
  /** Whether its table for our headers has become smaller, which the next block has to confirm (RFC 7541, 4.2). */
  tableShrunk = false;

  /** @param payload six bytes per setting */
  apply(payload: Uint8Array): Fault | undefined {
    for (let at = 0; at < payload.length; at += 6) {
      const id = readUint32(payload, at) >>> 16;
      const value = readUint32(payload, at + 2);
      if (id === settingIds.initialWindowSize) {
        if (value > maxWindowBytes) {
          const is = `an initial window of ${value} bytes came, wanted at most ${maxWindowBytes}`;
          return { code: H2Code.flowControlError, is };
        }
        this.windowBytes = value;
      } else if (id === settingIds.maxFrameSize) {
        if (value < initialFrameBytes || value > maxFrameBytes) {
          const is = `a frame size of ${value} bytes came, wanted ${initialFrameBytes} to ${maxFrameBytes}`;
          return { code: H2Code.protocolError, is };
        }
        this.frameBytes = value;
      } else if (id === settingIds.enablePush) {
        if (value > 1) return { code: H2Code.protocolError, is: `ENABLE_PUSH ${value} came, wanted 0 or 1` };
      } else if (id === settingIds.headerTableSize) {
        this.tableShrunk ||= value < initialTableBytes;
      }
    }
    return undefined;
  }
}

const initialTableBytes = 4096;
