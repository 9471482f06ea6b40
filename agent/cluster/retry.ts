import { pause } from "../../shared/async/abortable.ts";
import { CniError } from "../../shared/errors.ts";

const shortestMs = 100;
const longestMs = 2000;

export interface RetryOptions {
  readonly signal: AbortSignal;
  /** Hears of a failure when it says something else than the one before. */
  failed(error: CniError): void;
}

/**
 * Does `work` until it succeeds, with growing pauses between 0.1 and 2 s, each of a random length: after an outage all
 * nodes ask again.
 * @throws what the signal was aborted with
 */
export async function untilDone<T>(work: () => Promise<T>, { signal, failed }: RetryOptions): Promise<T> {
  let said: string | undefined;
  for (let pauseMs = shortestMs; ; pauseMs = Math.min(pauseMs * 2, longestMs)) {
    signal.throwIfAborted();
    try {
      return await abortable(work(), signal);
    } catch (caught) {
      signal.throwIfAborted();
      const error = CniError.from(caught, "join");
      if (error.message !== said) failed(error);
      said = error.message;
    }
    await pause(pauseMs * (0.5 + Math.random() / 2), signal);
  }
}

/** What comes of `work` once the signal is aborted is nobody's any more. */
export function abortable<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const onAbort = (): void => reject(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) onAbort();
  return Promise.race([work, promise]).finally(() => signal.removeEventListener("abort", onAbort));
}
