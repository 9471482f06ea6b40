/** What happened last, with times: printed where something is wrong. */
export class Events {
  readonly #most: number;
  readonly #from = performance.now();
  #lines: string[] = [];

  constructor(most = 200) {
    this.#most = most;
  }

  add(text: string): void {
    const seconds = ((performance.now() - this.#from) / 1000).toFixed(3).padStart(9);
    this.#lines.push(`${seconds} ${text}`);
    // Not at each line: the ring is small, the lines are many.
    if (this.#lines.length > 2 * this.#most) this.#lines = this.last();
  }

  last(): string[] {
    return this.#lines.slice(-this.#most);
  }
}
