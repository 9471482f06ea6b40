import type { CniError } from "../../shared/errors.ts";
import type { Allocator } from "../allocator.ts";

/**
 * Looks after the database of a long-lived process: makes its checkpoints between the calls, and notices when this process
 * and the plugins no longer use the same one, because the file was removed or replaced, or when it is damaged. Only a
 * restart of the process, which verifies everything anew, helps then.
 */
export class StoreWatch implements Disposable {
  readonly #lost = Promise.withResolvers<string>();
  #timer: ReturnType<typeof setInterval> | undefined;

  /** Resolves with a sentence when that happens. */
  get lost(): Promise<string> {
    return this.#lost.promise;
  }

  /** To be passed to the allocator that has the database open. */
  readonly onDamage = (error: CniError): void => this.#lost.resolve(error.message);

  /** From now on the allocator's database must stay the same file. */
  async start(allocator: Allocator, intervalMs: number): Promise<void> {
    const { path } = allocator;
    const own = await identityOf(path);
    this.#timer = setInterval(async () => {
      try {
        allocator.checkpoint();
      } catch {
        // What is wrong with the disk is said by the calls, which write there too.
      }
      const now = await identityOf(path);
      if (now === own) return;
      const is = now === undefined ? "is gone" : "is another file";
      this.#lost.resolve(`Cannot go on with the lease database "${path}": it ${is}, wanted the one that is open here`);
    }, intervalMs);
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }
}

async function identityOf(path: string): Promise<string | undefined> {
  try {
    const { dev, ino } = await Bun.file(path).stat();
    return `${dev}:${ino}`;
  } catch {
    return undefined;
  }
}
