import { CniCode, CniError } from "../../../shared/errors.ts";
import { whereToLook } from "./switch-errors.ts";

/** A switch that restarts is back sooner, also one with thousands of flows; one that is away for longer, nobody waits for. */
const restartMs = 3_000;

/** Whether the switch is there: who waits for one that stays away hears of it, and who comes later does not wait at all. */
export class SwitchPresence implements Disposable {
  #away = new AbortController();
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** Aborted, with a CniError, once the switch has stayed away. */
  get signal(): AbortSignal {
    return this.#away.signal;
  }

  /** @param why continues "the switch cannot be reached" where it is away */
  tell(isThere: boolean, why: () => string): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (isThere) {
      if (this.#away.signal.aborted) this.#away = new AbortController();
      return;
    }
    this.#timer = setTimeout(() => {
      const is = `${why()}, wanted ovs-vswitchd to run`;
      const message = `Cannot give a pod its port: ${is}`;
      this.#away.abort(new CniError(CniCode.tryAgainLater, message, { details: whereToLook() }));
    }, restartMs);
    this.#timer.unref();
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
  }
}

/** What comes of `work`, unless the switch stays away first. @throws what `signal` has been aborted with */
export async function unlessAway<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  const away = Promise.withResolvers<never>();
  const give = (): void => away.reject(signal.reason);
  signal.addEventListener("abort", give, { once: true });
  if (signal.aborted) give();
  try {
    return await Promise.race([away.promise, work]);
  } finally {
    signal.removeEventListener("abort", give);
  }
}
