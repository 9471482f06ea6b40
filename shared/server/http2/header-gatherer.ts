import { limits } from "../../limits.ts";
import { concat, type Frame, FrameType, flags, unpadded } from "../../rpc/h2-frames.ts";
import { type Header, HpackDecoder, HpackError } from "../../rpc/hpack.ts";
import { type Fault, H2Code } from "./fault.ts";
import { HeldBytes, type RequestMemory } from "./request-memory.ts";

export interface HeaderList {
  readonly stream: number;
  readonly endStream: boolean;
  readonly headers: readonly Header[];
}

interface OpenBlock {
  readonly stream: number;
  readonly endStream: boolean;
  readonly parts: Uint8Array[];
  bytes: number;
}

/**
 * Assembles header blocks (RFC 9113, section 4.3) and decodes them. Every block has to be decoded, also of refused
 * streams, because each may change the table for the next.
 */
export class HeaderGatherer {
  readonly #hpack = new HpackDecoder(limits.headerTableBytes, limits.headerBlockBytes);
  readonly #held: HeldBytes;
  #open: OpenBlock | undefined;

  constructor(memory: RequestMemory) {
    this.#held = new HeldBytes(memory);
  }

  /** Bytes of an incomplete block. */
  get heldBytes(): number {
    return this.#held.bytes;
  }

  /** Drops the incomplete block when the connection ends. */
  close(): void {
    this.#held.close();
    this.#open = undefined;
  }

  /** While a block is incomplete no other frame may come, on any stream. */
  isInterruptedBy(frame: Frame): boolean {
    return this.#open !== undefined && (frame.type !== FrameType.continuation || frame.stream !== this.#open.stream);
  }

  /** A HEADERS or CONTINUATION frame; answers the list that it completes. */
  push(frame: Frame): HeaderList | Fault | undefined {
    if (frame.type === FrameType.continuation) {
      if (this.#open === undefined) return { code: H2Code.protocolError, is: "CONTINUATION came without HEADERS" };
      // Empty frames would add nothing to the bound and could come without end.
      if (frame.payload.length === 0 && !(frame.flags & flags.endHeaders))
        return { code: H2Code.enhanceYourCalm, is: "an empty CONTINUATION came" };
      return this.#extend(this.#open, frame.payload, frame.flags);
    }
    const part = unpadded(frame, frame.flags & flags.priority ? 5 : 0);
    if (part === undefined) return { code: H2Code.protocolError, is: "HEADERS came with more padding than payload" };
    const endStream = (frame.flags & flags.endStream) !== 0;
    return this.#extend({ stream: frame.stream, endStream, parts: [], bytes: 0 }, part, frame.flags);
  }

  #extend(block: OpenBlock, part: Uint8Array, frameFlags: number): HeaderList | Fault | undefined {
    block.bytes += part.length;
    if (block.bytes > limits.headerBlockBytes) {
      const is = `headers of more than ${limits.headerBlockBytes} bytes came`;
      return { code: H2Code.enhanceYourCalm, is };
    }
    const whole = (frameFlags & flags.endHeaders) !== 0;
    if (!whole && !this.#held.take(part.length)) return { code: H2Code.enhanceYourCalm, is: this.#held.problem };
    if (whole) this.#held.giveBack();
    // Copied if it waits for the next frame, because the caller reuses the bytes.
    block.parts.push(whole ? part : new Uint8Array(part));
    this.#open = whole ? undefined : block;
    if (!whole) return undefined;
    const [only = part] = block.parts;
    try {
      const headers = this.#hpack.decode(block.parts.length === 1 ? only : concat(block.parts));
      return { stream: block.stream, endStream: block.endStream, headers };
    } catch (caught) {
      if (!(caught instanceof HpackError)) throw caught;
      return { code: H2Code.compressionError, is: caught.message };
    }
  }
}

/** The memory that decoded headers take, about. */
export const bytesOf = (headers: HeaderList["headers"]): number =>
  headers.reduce((sum, [name, value]) => sum + name.length + value.length, 0);
