import { type Frame, frameHeaderBytes, frameLength, initialFrameBytes, readFrame } from "../../rpc/h2-frames.ts";

const nothing = new Uint8Array(0);

/** Cuts received bytes into frames. A complete frame is not copied; at most one incomplete frame is held. */
export class FrameReader {
  #chunk: Uint8Array = nothing;
  #at = 0;
  /** The incomplete frame: a buffer for its header, then for all of it. */
  #held: Uint8Array | undefined;
  #filled = 0;

  /** The next bytes, to be read by `next` until there is no more. */
  push(chunk: Uint8Array): void {
    this.#chunk = chunk;
    this.#at = 0;
  }

  /**
   * The next whole frame, valid until the next call; `"too long"` for one over the limit; `undefined` if there is none
   * yet.
   */
  next(): Frame | "too long" | undefined {
    if (this.#at === this.#chunk.length) {
      // The chunk is not referenced any longer, since it may be much larger than the rest.
      this.push(nothing);
      return undefined;
    }
    if (this.#held !== undefined) return this.#complete(this.#held);
    if (frameLength(this.#chunk, this.#at) > initialFrameBytes) return "too long";
    const frame = readFrame(this.#chunk, this.#at);
    if (frame === undefined) return this.#complete(new Uint8Array(frameHeaderBytes));
    this.#at += frameHeaderBytes + frame.payload.length;
    return frame;
  }

  #complete(room: Uint8Array): Frame | "too long" | undefined {
    let held = this.#fill(room);
    if (this.#filled < frameHeaderBytes) return undefined;
    if (held.length === frameHeaderBytes) {
      const length = frameLength(held, 0);
      if (length > initialFrameBytes) return "too long";
      held = new Uint8Array(frameHeaderBytes + length);
      held.set(room);
      this.#fill(held);
    }
    if (this.#filled < held.length) return undefined;
    this.#held = undefined;
    this.#filled = 0;
    return readFrame(held, 0);
  }

  #fill(room: Uint8Array): Uint8Array {
    const part = this.#chunk.subarray(this.#at, this.#at + room.length - this.#filled);
    room.set(part, this.#filled);
    this.#at += part.length;
    this.#filled += part.length;
    this.#held = room;
    return room;
  }
}
