/** A time limit that is set anew whenever something was heard. Whoever waits is aborted with a sentence that says for what. */
export class Patience implements Disposable {
  readonly #silent = new AbortController();
  #timer: ReturnType<typeof setTimeout> | undefined;

  get signal(): AbortSignal {
    return this.#silent.signal;
  }

  /** From now on it lasts this long. @param is what is the case at its end */
  last(ms: number, is: string): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#silent.abort(new Error(`the API server ${is}`)), ms);
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
  }
}
