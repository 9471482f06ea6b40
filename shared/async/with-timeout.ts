/**
 * Waits at most `ms` for `work`; after that the work goes on, and its result is dropped.
 * @param onTimeout gives what is answered instead, or throws
 */
export async function withTimeout<T, U = never>(work: Promise<T>, ms: number, onTimeout: () => U): Promise<T | U> {
  const { promise: late, resolve, reject } = Promise.withResolvers<U>();
  const timer = setTimeout(() => {
    try {
      resolve(onTimeout());
    } catch (caught) {
      reject(caught);
    }
  }, ms);
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
