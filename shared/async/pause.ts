/**
 * Ends early, without a word, when the signal is aborted. What waits again and again for as long as the agent runs waits
 * with this: each `Promise.race` against one promise that lasts leaves something behind with it.
 */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  const onAbort = (): void => resolve();
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) resolve();
  return promise.finally(() => {
    clearTimeout(timer);
    signal.removeEventListener("abort", onAbort);
  });
}
