import { limits } from "../../limits.ts";

/** The memory of requests until they are served, counted over all connections of a server. */
export interface RequestMemory {
  heldBytes: number;
  /** Called when there is none left: the connection that holds the most in incomplete requests has to release it. */
  makeRoom?(): void;
}

/** The memory of one request, or of its received part. */
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

  /** @returns whether there is room for so much more; `false` also if this request itself was dropped to make room */
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

  /** Releases it for good; later bytes are not kept. */
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
