import { functionNames, NativeError } from "./native.ts";

const givenUpAt = 0;
const functionAt = 1;

/**
 * Two words of memory that a thread and its owner share, since a thread inside of a native call hears no messages:
 * in which function it is, and whether anybody still waits for what it does.
 */
export class CallMarks {
  readonly memory: SharedArrayBuffer;
  readonly #words: Int32Array;

  constructor(memory = new SharedArrayBuffer(8)) {
    this.memory = memory;
    this.#words = new Int32Array(memory);
  }

  /** Owner: the function that the thread is in; empty where it is in none. */
  get inside(): string {
    return functionNames[Atomics.load(this.#words, functionAt) - 1] ?? "";
  }

  /** Owner: from now on the thread begins nothing more but what cleans up. */
  abandon(): void {
    Atomics.store(this.#words, givenUpAt, 1);
  }

  /** Owner: the thread has come back and gets other work. */
  reset(): void {
    Atomics.store(this.#words, givenUpAt, 0);
  }

  /** Thread: runs one native function. @throws {NativeError} in its place where the call was given up meanwhile */
  within<T>(name: string, native: () => T): T {
    if (Atomics.load(this.#words, givenUpAt) !== 0)
      throw new NativeError({
        call: name,
        reason: `${name} was not begun: the call was given up before`,
      });
    return this.withinAlways(name, native);
  }

  /** Thread: the same for what cleans up. */
  withinAlways<T>(name: string, native: () => T): T {
    Atomics.store(this.#words, functionAt, functionNames.indexOf(name) + 1);
    try {
      return native();
    } finally {
      Atomics.store(this.#words, functionAt, 0);
    }
  }
}
