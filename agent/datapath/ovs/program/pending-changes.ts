import { CniCode, CniError } from "../../../../shared/errors.ts";
import type { KeyedChanges } from "./flow-sets.ts";

/** A call that waits for the switch: it ends once, with the switch's answer or when its time is up. */
export class PendingCall {
  readonly done: Promise<void>;
  readonly #settled = Promise.withResolvers<void>();
  readonly #timer: ReturnType<typeof setTimeout>;
  #isOver = false;

  /** @param action continues "Cannot …" @param why answers the present problem, if there is one */
  constructor(action: string, limitMs: number, why: () => string) {
    this.done = this.#settled.promise;
    // Nobody may wait for it any more.
    this.done.catch(() => undefined);
    this.#timer = setTimeout(() => {
      const is = `the switch has not taken it after ${limitMs} ms (${why()}); it gets it as soon as it can`;
      this.fail(new CniError(CniCode.tryAgainLater, `Cannot ${action}: ${is}`));
    }, limitMs);
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  end(): void {
    this.#close();
    this.#settled.resolve();
  }

  fail(error: CniError): void {
    this.#close();
    this.#settled.reject(error);
  }

  #close(): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
  }
}

/** One call of `set`. */
export interface PendingChange {
  readonly changes: KeyedChanges;
  /** Flows and groups that it may bring. */
  readonly messages: number;
  readonly call: PendingCall;
  /** Its changes are part of the wanted state, whatever happens to the call. */
  isKept: boolean;
}

/** Changes that the switch has not taken yet, in the order in which they came. */
export class PendingChanges implements Iterable<PendingChange> {
  readonly #changes: PendingChange[] = [];

  get count(): number {
    return this.#changes.length;
  }

  [Symbol.iterator](): Iterator<PendingChange> {
    return this.#changes.values();
  }

  add(change: PendingChange): void {
    this.#changes.push(change);
  }

  /** Removes and answers the first ones. */
  take(count: number): readonly PendingChange[] {
    return this.#changes.splice(0, count);
  }

  /** The first ones that fit into one bundle, at least one; they stay in the queue. */
  batch(maxMessages: number): readonly PendingChange[] {
    let messages = 0;
    const tooFar = this.#changes.findIndex((change) => {
      messages += change.messages;
      return messages > maxMessages;
    });
    return this.#changes.slice(0, tooFar < 0 ? undefined : Math.max(1, tooFar));
  }

  /** Drops calls that have timed out, if their changes are kept already. */
  dropOver(): void {
    const others = this.#changes.filter(({ call, isKept }) => !(call.isOver && isKept));
    this.#changes.splice(0, this.#changes.length, ...others);
  }
}
