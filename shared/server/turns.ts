/** Somebody with work that waits for its turn. */
export interface Waiting {
  /** Begins one piece of it. @returns whether another one could begin now */
  beginNext(): boolean;
}

/** Calls that begin in one turn of the event loop: a turn costs as much as the cheapest of them. */
export const callsPerTurn = 8;

/**
 * Whose call begins next, where many wait: the connections of a server take turns, so that whoever asks for a thousand
 * things at once waits for himself. After a few calls the event loop goes on: others are read from, answers leave,
 * deadlines pass. A call that comes alone begins at once.
 */
export class Turns {
  /** In the order of their turns. */
  readonly #waiting = new Set<Waiting>();
  /** Of this turn of the event loop. */
  #begun = 0;

  /** `one` has something that may begin. Who waits already keeps his place. */
  enter(one: Waiting): void {
    this.#waiting.add(one);
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
      if (this.#begun === 0) setImmediate(() => this.#nextTurn());
      this.#begun++;
      this.#waiting.delete(one);
      if (one.beginNext()) this.#waiting.add(one);
    }
  }

  #nextTurn(): void {
    this.#begun = 0;
    this.#go();
  }
}
