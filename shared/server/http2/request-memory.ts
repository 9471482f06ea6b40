import { limits } from "../../limits.ts";

/** What requests take of the memory until they are served, counted over all connections of a server. */
export interface RequestMemory {
  heldBytes: number;
  /** Asked where there is no more: who holds the most of it and gets no further is to let go. */
  makeRoom?(): void;
}

/** What one request, or the beginning of one, holds of it. */
export class HeldBytes {
  readonly #memory: RequestMemory;
  #bytes = 0;
  #isOver = false;

  constructor(memory: RequestMemory) {
    this.#memory = memory;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** @returns whether there is room for so much more; none where room was made of whoever asks */
  take(bytes: number): boolean {
    if (this.#isFull(bytes)) this.#memory.makeRoom?.();
    if (this.#isOver || this.#isFull(bytes)) return false;
    this.#memory.heldBytes += bytes;
    this.#bytes += bytes;
    return true;
  }

  giveBack(): void {
    this.#memory.heldBytes -= this.#bytes;
    this.#bytes = 0;
  }

  /** Gives back for good: what still comes is not kept, so nobody would give it back. */
  close(): void {
    this.giveBack();
    this.#isOver = true;
  }

  /** What is wrong where there is none. */
  get problem(): string {
    return `${this.#memory.heldBytes} bytes of requests are held, wanted at most ${limits.requestBytesHeld}`;
  }

  #isFull(bytes: number): boolean {
    return this.#memory.heldBytes + bytes > limits.requestBytesHeld;
  }
}
