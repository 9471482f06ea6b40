import { type Live, LiveValue } from "../../shared/async/live-value.ts";
import type { Followed } from "./node-registry.ts";

/** A part of what somebody else follows. Disposing ends the source. */
export class FollowedPart<T, U> implements Followed<U> {
  readonly #source: Live<T> & AsyncDisposable;
  readonly #value = new LiveValue<U>();
  readonly #subscription: Disposable;

  constructor(source: Live<T> & AsyncDisposable, part: (whole: T) => U) {
    this.#source = source;
    this.#subscription = source.subscribe((whole) => this.#value.set(part(whole)));
  }

  get current(): U | undefined {
    return this.#value.current;
  }

  subscribe(listener: (value: U) => void): Disposable {
    return this.#value.subscribe(listener);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#subscription[Symbol.dispose]();
    await this.#source[Symbol.asyncDispose]();
  }
}
