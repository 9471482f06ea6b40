/** A connection with calls that wait for their turn. */
export interface Waiting {
  /** Begins one piece of it. @returns whether another one could begin now */
  beginNext(): boolean;
}

/** Calls that begin in one turn of the event loop, since a turn itself costs as much as a cheap call. */
export const callsPerTurn = 8;

/**
 * Decides which waiting call begins next: the connections of a server take turns, so that a client with a thousand
 * calls at once delays only itself. After a few calls the event loop continues with reading, writing and deadlines. A
 * call that comes alone begins at once.
 */
export class Turns {
  /** In the order of their turns. */
  readonly #waiting = new Set<Waiting>();
  /** Calls begun in this turn of the event loop. */
  #begun = 0;

  /** `one` has a call that may begin. If it waits already it keeps its place. */
  enter(one: Waiting): void {
    if (this.#waiting.size === 0 && this.#begun < callsPerTurn) {
      this.#begin(one);
      if (this.#waiting.size === 0) return;
    } else this.#waiting.add(one);
    this.#go();
  }

  /** Its peer has gone. */
  leave(one: Waiting): void {
    this.#waiting.delete(one);
  }

  #go(): void {
    while (this.#begun < callsPerTurn) {
      const [one] = this.#waiting;
      if (one === undefined) return;
      this.#waiting.delete(one);
      this.#begin(one);
    }
  }

  #begin(one: Waiting): void {
    this.#begun++;
    // A call that comes alone needs no end of its turn: it counts for the next one's.
    if (this.#begun === 2) setImmediate(() => this.#nextTurn());
    if (one.beginNext()) this.#waiting.add(one);
  }

  #nextTurn(): void {
    this.#begun = 0;
    this.#go();
  }
}
