/** A value that changes over time and that others follow. Only the latest counts. */
export interface Live<T> {
  /** `undefined` until the first has come. */
  readonly current: T | undefined;
  /**
   * Calls the listener with what is there, and from then on with every later value, in order. If a listener throws, the
   * others are still called.
   */
  subscribe(listener: (value: T) => void): Disposable;
}

/** The same for its owner, which sets the value. */
export class LiveValue<T> implements Live<T> {
  #current: T | undefined;
  readonly #listeners = new Set<(value: T) => void>();

  constructor(first?: T) {
    this.#current = first;
  }

  get current(): T | undefined {
    return this.#current;
  }

  set(value: T): void {
    this.#current = value;
    for (const listener of this.#listeners) queueMicrotask(() => listener(value));
  }

  subscribe(listener: (value: T) => void): Disposable {
    // A wrapper, so that the same function can subscribe more than once.
    const own = (value: T): void => {
      if (this.#listeners.has(own)) listener(value);
    };
    this.#listeners.add(own);
    const first = this.#current;
    if (first !== undefined) queueMicrotask(() => own(first));
    return { [Symbol.dispose]: () => void this.#listeners.delete(own) };
  }
}
