import { type Stats, statSync } from "node:fs";
import type { CniError } from "../../shared/errors.ts";

/**
 * Finds out when the agent and the plugins no longer see one database: it was taken away or replaced, so that the
 * agent's is a file without a name, or it is damaged. Only a new start, which looks at everything anew, helps then.
 */
export class StoreWatch implements Disposable {
  readonly #lost = Promise.withResolvers<string>();
  #timer: ReturnType<typeof setInterval> | undefined;

  /** Resolves, with a sentence, when it is so. */
  get lost(): Promise<string> {
    return this.#lost.promise;
  }

  /** To be given to the allocator that has the database open. */
  readonly onDamage = (error: CniError): void => this.#lost.resolve(error.message);

  /** From now on the file at `path` must stay the one that it is. */
  start(path: string, intervalMs: number): void {
    const own = identityOf(path);
    this.#timer = setInterval(() => {
      const now = identityOf(path);
      if (now === own) return;
      const is = now === undefined ? "is gone" : "is another file";
      this.#lost.resolve(`Cannot go on with the lease database "${path}": it ${is}, wanted the one that is open here`);
    }, intervalMs);
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }
}

function identityOf(path: string): string | undefined {
  let stat: Stats | undefined;
  try {
    stat = statSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
  return stat === undefined ? undefined : `${stat.dev}:${stat.ino}`;
}
