import type { Call } from "./calls.ts";
import type { Changes } from "./parts.ts";

/** One call of `set`. */
export interface Change {
  readonly changes: Changes;
  /** Flows and groups that it may bring. */
  readonly messages: number;
  readonly call: Call;
  /** What it changes is kept: it has to get to the switch, whatever the call hears. */
  isKept: boolean;
}

/** Changes that the switch has not taken yet, in the order in which they came. */
export class WaitingChanges implements Iterable<Change> {
  readonly #changes: Change[] = [];

  get count(): number {
    return this.#changes.length;
  }

  [Symbol.iterator](): Iterator<Change> {
    return this.#changes.values();
  }

  add(change: Change): void {
    this.#changes.push(change);
  }

  /** The first ones, out of the queue. */
  take(count: number): readonly Change[] {
    return this.#changes.splice(0, count);
  }

  /** The first ones, in the queue still, that go into one bundle together; one at least, if there is any. */
  batch(mostMessages: number): readonly Change[] {
    let messages = 0;
    const tooFar = this.#changes.findIndex((change) => {
      messages += change.messages;
      return messages > mostMessages;
    });
    return this.#changes.slice(0, tooFar < 0 ? undefined : Math.max(1, tooFar));
  }

  /** Calls whose time is up wait for nothing any more; for what is kept already only. */
  dropOver(): void {
    const others = this.#changes.filter(({ call, isKept }) => !(call.isOver && isKept));
    this.#changes.splice(0, this.#changes.length, ...others);
  }
}
