/** What is used of an `AbortSignal`; each of those is one. */
export interface EndSignal {
  readonly aborted: boolean;
  addEventListener(type: "abort", listener: (event: Event) => void, options?: { readonly once?: boolean }): void;
  removeEventListener(type: "abort", listener: (event: Event) => void): void;
}

/**
 * An `AbortSignal` that is made when somebody first listens to it. Most calls are over before anybody does, and on cold
 * caches one that joins two others costs a hundredth of an ADD.
 */
export class LateSignal implements EndSignal {
  readonly #parent: EndSignal | undefined;
  #aborted = false;
  #made: { readonly own: AbortController; readonly signal: AbortSignal } | undefined;

  /** @param parent with whose end this one ends too */
  constructor(parent?: EndSignal) {
    this.#parent = parent;
  }

  get aborted(): boolean {
    return this.#aborted || this.#parent?.aborted === true;
  }

  abort(): void {
    this.#aborted = true;
    this.#made?.own.abort();
  }

  addEventListener(type: "abort", listener: (event: Event) => void, options?: { readonly once?: boolean }): void {
    this.#signal.addEventListener(type, listener, options);
  }

  removeEventListener(type: "abort", listener: (event: Event) => void): void {
    this.#made?.signal.removeEventListener(type, listener);
  }

  /** The same as a signal for functions that want a real one. */
  static real(signal: EndSignal): AbortSignal {
    return signal instanceof LateSignal ? signal.#signal : (signal as AbortSignal);
  }

  get #signal(): AbortSignal {
    if (this.#made === undefined) {
      const own = new AbortController();
      if (this.#aborted) own.abort();
      const others = this.#parent === undefined ? [] : [LateSignal.real(this.#parent)];
      this.#made = { own, signal: AbortSignal.any([own.signal, ...others]) };
    }
    return this.#made.signal;
  }
}
