/** Somebody with work that waits for its turn. */
export interface Waiting {
  /** Begins one piece of it. @returns whether another one could begin now */
  beginNext(): boolean;
}

/**
 * Whose call begins next, where many wait: the connections of a server take turns, so that whoever asks for a thousand
 * things at once waits for himself. After each call the event loop goes on: others are read from, answers leave,
 * deadlines pass. A call that comes alone begins at once.
 */
export class Turns {
  /** In the order of their turns. */
  readonly #waiting = new Set<Waiting>();
  #isTaken = false;

  /** `one` has something that may begin. Who waits already keeps his place. */
  enter(one: Waiting): void {
    this.#waiting.add(one);
    if (!this.#isTaken) this.#next();
  }

  /** Its peer has gone. */
  leave(one: Waiting): void {
    this.#waiting.delete(one);
  }

  #next(): void {
    const [one] = this.#waiting;
    if (one === undefined) return;
    this.#isTaken = true;
    setImmediate(() => {
      this.#isTaken = false;
      this.#next();
    });
    this.#waiting.delete(one);
    if (one.beginNext()) this.#waiting.add(one);
  }
}
