/** A value that comes and changes by itself, and that others follow. Only the latest counts. */
export interface Live<T> {
  /** `undefined` until the first has come. */
  readonly current: T | undefined;
  /**
   * Calls the listener with what is there, and from then on with every later value, in order. A listener that throws
   * is a defect of its own; the others hear all the same.
   */
  subscribe(listener: (value: T) => void): Disposable;
}

/** Such a value, for whoever sets it. */
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
    // Each subscription is one of its own, also of the same function.
    const own = (value: T): void => {
      if (this.#listeners.has(own)) listener(value);
    };
    this.#listeners.add(own);
    const first = this.#current;
    if (first !== undefined) queueMicrotask(() => own(first));
    return { [Symbol.dispose]: () => void this.#listeners.delete(own) };
  }
}
