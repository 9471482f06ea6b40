import { CniCode, CniError } from "../../../../shared/errors.ts";

/** A call that waits for the switch: it ends once, with the switch's answer or when its time is up. */
export class Call {
  readonly done: Promise<void>;
  readonly #settled = Promise.withResolvers<void>();
  readonly #timer: ReturnType<typeof setTimeout>;
  #isOver = false;

  /** @param action continues "Cannot …" @param why what is wrong now, where something is */
  constructor(action: string, limitMs: number, why: () => string) {
    this.done = this.#settled.promise;
    // Nobody may wait for it any more.
    this.done.catch(() => undefined);
    this.#timer = setTimeout(() => {
      const is = `the switch has not taken it after ${limitMs} ms (${why()}); it gets it as soon as it can`;
      this.fail(new CniError(CniCode.tryAgainLater, `Cannot ${action}: ${is}, wanted it at once`));
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
