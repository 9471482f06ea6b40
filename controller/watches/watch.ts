import type { WatchOut } from "../../shared/https/mod.ts";
import type { Encoding } from "./api-kind.ts";
import type { WatchEvent, WatchedResource } from "./watch-event.ts";

/** What a client may fall behind before it is cut off, and starts over. */
export interface WatchBounds {
  /** Of changes that wait; the initial set may be of any size. */
  readonly waitingBytes: number;
  /** For so long nothing at all was taken. */
  readonly stallMs: number;
}

/** A burst of changes waits, and who does not read is gone before it costs much. */
export const usualBounds: WatchBounds = { waitingBytes: 16 * 1024 * 1024, stallMs: 30_000 };
/** Small events of one moment are written as one. */
const pieceBytes = 64 * 1024;

export interface WatchOptions {
  readonly node: string;
  /** Absent: everything, in order. */
  readonly resource: WatchedResource | undefined;
  readonly encoding: Encoding;
  /** It was asked for a watch that begins with a list, as client-go's informers do. */
  readonly isWatchList?: boolean;
  readonly bounds: WatchBounds;
}

/** One who follows a node: the initial set, and then every change. */
export class Watch {
  readonly node: string;
  readonly #options: WatchOptions;
  readonly #out: WatchOut;
  readonly #ended: (watch: Watch) => void;
  #waiting: Uint8Array[] = [];
  #waitingBytes = 0;
  /** What of it belongs to the initial set, which may be of any size. */
  #initialBytes = 0;
  #stalled: ReturnType<typeof setTimeout> | undefined;
  #isOver = false;

  constructor(options: WatchOptions, out: WatchOut, ended: (watch: Watch) => void) {
    this.node = options.node;
    this.#options = options;
    this.#out = out;
    this.#ended = ended;
  }

  begin(events: Iterable<WatchEvent>): void {
    this.#add(events);
    this.#initialBytes = this.#waitingBytes;
    this.#flush();
  }

  push(events: Iterable<WatchEvent>): void {
    if (this.#isOver) return;
    this.#add(events);
    if (this.#waitingBytes - this.#initialBytes > this.#options.bounds.waitingBytes) this.#drop();
    else this.#flush();
  }

  /** Events that were not written yet. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** What was written has gone out. */
  drained(): void {
    clearTimeout(this.#stalled);
    this.#stalled = undefined;
    this.#flush();
  }

  /** Ends it in good order, after all that waits. Who follows starts over. */
  end(): void {
    if (this.#isOver) return;
    this.#over();
    for (const piece of this.#waiting) this.#out.write(piece);
    this.#out.end();
  }

  /** Its connection is gone. */
  closed(): void {
    if (!this.#isOver) this.#over();
  }

  #add(events: Iterable<WatchEvent>): void {
    const { resource, encoding } = this.#options;
    for (const event of events) {
      if (resource !== undefined && event.resource !== resource) continue;
      const frame = event.frame(encoding);
      this.#waiting.push(frame);
      this.#waitingBytes += frame.length;
    }
  }

  #flush(): void {
    if (this.#isOver) return;
    while (this.#stalled === undefined && this.#waiting.length > 0) {
      const piece = this.#piece();
      this.#waitingBytes -= piece.length;
      this.#initialBytes = Math.max(0, this.#initialBytes - piece.length);
      if (!this.#out.write(piece)) this.#stalled = setTimeout(() => this.#drop(), this.#options.bounds.stallMs);
    }
  }

  #piece(): Uint8Array {
    let [count, length] = [0, 0];
    for (const { length: more } of this.#waiting) {
      if (count > 0 && length + more > pieceBytes) break;
      count++;
      length += more;
    }
    const parts = this.#waiting.splice(0, count);
    const [only] = parts;
    if (only !== undefined && parts.length === 1) return only;
    const piece = new Uint8Array(length);
    let at = 0;
    for (const part of parts) {
      piece.set(part, at);
      at += part.length;
    }
    return piece;
  }

  #drop(): void {
    this.#over();
    this.#out.destroy();
  }

  #over(): void {
    this.#isOver = true;
    clearTimeout(this.#stalled);
    this.#ended(this);
  }
}
