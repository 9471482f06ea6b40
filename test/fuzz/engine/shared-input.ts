import { writeFileSync } from "node:fs";

const headBytes = 8;
const maxBytes = 1 << 20;

/** The input that is being tried, in memory that two processes see: a process that hangs or dies cannot tell it any more. */
export class SharedInput {
  readonly #bytes: Uint8Array;
  readonly #head: DataView;

  constructor(file: string) {
    this.#bytes = Bun.mmap(file, { shared: true });
    this.#head = new DataView(this.#bytes.buffer, this.#bytes.byteOffset, headBytes);
  }

  static create(file: string): SharedInput {
    writeFileSync(file, new Uint8Array(headBytes + maxBytes));
    return new SharedInput(file);
  }

  write(input: Uint8Array): void {
    const length = Math.min(input.length, maxBytes);
    this.#bytes.set(input.subarray(0, length), headBytes);
    this.#head.setUint32(4, length);
    this.#head.setUint32(0, this.#head.getUint32(0) + 1);
  }

  /** How many inputs have been begun. */
  get count(): number {
    return this.#head.getUint32(0);
  }

  read(): Uint8Array {
    return this.#bytes.slice(headBytes, headBytes + this.#head.getUint32(4));
  }
}
