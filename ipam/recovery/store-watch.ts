import type { CniError } from "../../shared/errors.ts";

/**
 * Finds out when a process that lives long and the plugins no longer see one database: it was taken away or replaced,
 * so that this process has a file without a name, or it is damaged. Only a new start, which looks at everything anew,
 * helps then.
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
  async start(path: string, intervalMs: number): Promise<void> {
    const own = await identityOf(path);
    this.#timer = setInterval(async () => {
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
