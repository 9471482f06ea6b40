import {
  encodeFrame,
  FrameType,
  flags,
  initialFrameBytes,
  initialWindowBytes,
  maxFrameBytes,
  maxWindowBytes,
  readUint32,
  settingIds,
} from "./h2-frames.ts";
import { broken, type Problem } from "./rpc-error.ts";

/** The request's DATA frames, as far as the server's windows allow (RFC 9113, sections 5.2 and 6.9). */
export class RequestSender {
  readonly #stream: number;
  readonly #request: Uint8Array;
  #sent = 0;
  #connectionWindow = initialWindowBytes;
  #streamWindow = initialWindowBytes;
  #initialWindow = initialWindowBytes;
  #frameBytes = initialFrameBytes;

  constructor(stream: number, request: Uint8Array) {
    this.#stream = stream;
    this.#request = request;
  }

  /** Applies a server's settings that concern sending. */
  settings(payload: Uint8Array): Problem | undefined {
    for (let at = 0; at < payload.length; at += 6) {
      const id = readUint32(payload, at) >>> 16;
      const value = readUint32(payload, at + 2);
      if (id === settingIds.initialWindowSize) {
        if (value > maxWindowBytes) return broken(`an initial window of ${value} bytes`);
        // It applies to the open stream too, whose window may become negative.
        this.#streamWindow += value - this.#initialWindow;
        this.#initialWindow = value;
      } else if (id === settingIds.maxFrameSize) {
        if (value < initialFrameBytes || value > maxFrameBytes) return broken(`a frame size of ${value} bytes`);
        this.#frameBytes = value;
      }
    }
    return undefined;
  }

  windowUpdate(stream: number, payload: Uint8Array): Problem | undefined {
    if ((stream !== 0 && stream !== this.#stream) || payload.length !== 4) return broken("a malformed WINDOW_UPDATE");
    const more = readUint32(payload, 0) & maxWindowBytes;
    if (more === 0) return broken("a WINDOW_UPDATE of 0 bytes");
    if (stream === 0) this.#connectionWindow += more;
    else this.#streamWindow += more;
    const beyond = this.#connectionWindow > maxWindowBytes || this.#streamWindow > maxWindowBytes;
    return beyond ? broken("a window beyond 2^31 bytes") : undefined;
  }

  /** The frames that may go out now; the last one of the request ends the stream. */
  frames(): Uint8Array[] {
    const frames: Uint8Array[] = [];
    while (this.#sent < this.#request.length) {
      const left = this.#request.length - this.#sent;
      const bytes = Math.min(left, this.#frameBytes, this.#connectionWindow, this.#streamWindow);
      if (bytes <= 0) break;
      const part = this.#request.subarray(this.#sent, this.#sent + bytes);
      frames.push(encodeFrame(FrameType.data, bytes === left ? flags.endStream : 0, this.#stream, part));
      this.#sent += bytes;
      this.#connectionWindow -= bytes;
      this.#streamWindow -= bytes;
    }
    return frames;
  }
}
