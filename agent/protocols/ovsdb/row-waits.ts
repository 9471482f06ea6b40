import { OvsdbCode, OvsdbError } from "./ovsdb-error.ts";
import type { RowChange } from "./view.ts";

export interface WaitBounds {
  readonly timeoutMs: number;
  /** Continues "Cannot …". */
  readonly action: string;
  /** Ends the wait when aborted. */
  readonly signal?: AbortSignal | undefined;
}

/** What is looked for: in what has changed, or (`undefined`) in all that there is. */
export type Look<T> = (changes: readonly RowChange[] | undefined) => T | undefined;

interface Wait {
  /** @returns whether it is over */
  look(changes: readonly RowChange[] | undefined): boolean;
  readonly action: string;
  fail(error: OvsdbError): void;
}

/** Those who wait for the local view to show something. */
export class RowWaits {
  readonly #waits = new Set<Wait>();

  /**
   * @param look asked at once where `isCurrent`, and at every change; what it throws ends the wait
   * @throws {OvsdbError} `not seen` where the time is over
   */
  add<T>(look: Look<T>, isCurrent: boolean, { timeoutMs, action, signal }: WaitBounds): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const wait: Wait = {
      look(changes) {
        try {
          const found = look(changes);
          if (found !== undefined) resolve(found);
          return found !== undefined;
        } catch (caught) {
          reject(caught);
          return true;
        }
      },
      action,
      fail: reject,
    };
    if (isCurrent && wait.look(undefined)) return promise;
    const give = (is: string): void => {
      reject(new OvsdbError(OvsdbCode.notSeen, `Cannot ${action}: ${is}`));
    };
    const timer = setTimeout(() => {
      give(`the database has not come to show it, wanted it within ${timeoutMs} ms`);
    }, timeoutMs);
    const stop = (): void => give("the caller has given up, wanted the database to show it before");
    if (signal?.aborted === true) stop();
    signal?.addEventListener("abort", stop);
    this.#waits.add(wait);
    return promise.finally(() => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", stop);
      this.#waits.delete(wait);
    });
  }

  /** Rows have changed; `undefined`: everything is to be looked at again. */
  look(changes: readonly RowChange[] | undefined): void {
    for (const wait of this.#waits) {
      if (wait.look(changes)) this.#waits.delete(wait);
    }
  }

  failAll(error: (action: string) => OvsdbError): void {
    for (const wait of this.#waits) wait.fail(error(wait.action));
    this.#waits.clear();
  }
}
