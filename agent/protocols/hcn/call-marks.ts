import { functionNames, NativeError } from "./native.ts";

const givenUpAt = 0;
const functionAt = 1;

/**
 * Two words of memory that a thread and its owner share, because a thread inside a native call receives no messages:
 * the function that it is in, and whether its result is still wanted.
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

  /** Owner: from now on the thread only begins calls that clean up. */
  abandon(): void {
    Atomics.store(this.#words, givenUpAt, 1);
  }

  /** Owner: the thread has returned and gets other work. */
  reset(): void {
    Atomics.store(this.#words, givenUpAt, 0);
  }

  /** Thread: runs one native function. @throws {NativeError} instead, if the call was abandoned meanwhile */
  within<T>(name: string, native: () => T): T {
    if (Atomics.load(this.#words, givenUpAt) !== 0)
      throw new NativeError({
        call: name,
        reason: `${name} was not begun: the call was given up before`,
      });
    return this.withinAlways(name, native);
  }

  /** Thread: the same for calls that clean up. */
  withinAlways<T>(name: string, native: () => T): T {
    Atomics.store(this.#words, functionAt, functionNames.indexOf(name) + 1);
    try {
      return native();
    } finally {
      Atomics.store(this.#words, functionAt, 0);
    }
  }
}
