import { headerBytes } from "./constants.ts";
import { MalformedMessage } from "./openflow-error.ts";

/** One message with its header (OpenFlow 1.5.1, 7.1.1). */
export interface Frame {
  readonly version: number;
  readonly type: number;
  readonly xid: number;
  /** All of it. Its own bytes: nothing else writes there. */
  readonly bytes: Uint8Array;
}

const nothing = new Uint8Array(0);

/** Cuts what arrives into messages. Holds at most one that has not come whole, which is 64 KiB at the most. */
export class FrameReader {
  #held = nothing;
  /** Of `#held`, how much has come. */
  #filled = 0;

  /**
   * The messages that are whole with `chunk`, which may be cut anywhere. The array may be reused afterwards.
   * @throws {MalformedMessage} where a length is impossible: nothing behind it can be read any more
   */
  *push(chunk: Uint8Array): Generator<Frame> {
    let at = 0;
    while (at < chunk.length) {
      const wanted = this.#filled < headerBytes ? headerBytes : this.#held.length;
      if (this.#held.length < wanted) this.#held = new Uint8Array(wanted);
      const part = chunk.subarray(at, at + wanted - this.#filled);
      this.#held.set(part, this.#filled);
      this.#filled += part.length;
      at += part.length;
      if (this.#filled < wanted) return;
      if (wanted === headerBytes && this.#grow()) continue;
      yield this.#finish();
    }
  }

  /** Whether more than the header is to come. */
  #grow(): boolean {
    const length = new DataView(this.#held.buffer).getUint16(2);
    if (length < headerBytes) {
      throw new MalformedMessage("an OpenFlow message", `it says ${length} bytes, wanted ${headerBytes} at least`);
    }
    if (length === headerBytes) return false;
    const whole = new Uint8Array(length);
    whole.set(this.#held);
    this.#held = whole;
    return true;
  }

  #finish(): Frame {
    const bytes = this.#held;
    const view = new DataView(bytes.buffer);
    this.#held = nothing;
    this.#filled = 0;
    return { version: bytes[0] ?? 0, type: bytes[1] ?? 0, xid: view.getUint32(4), bytes };
  }
}
