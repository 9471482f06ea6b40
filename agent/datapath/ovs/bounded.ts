import { CniCode, CniError } from "../../../shared/errors.ts";
import { whereToLook } from "./switch-errors.ts";

/** All of them to their end; then the first error, if there is one. */
export async function allOf(work: readonly Promise<void>[]): Promise<void> {
  const failed = (await Promise.allSettled(work)).find((result) => result.status === "rejected");
  if (failed !== undefined) throw failed.reason;
}

/**
 * Waits no longer than this for what goes on by itself.
 * @param action continues "Cannot …"
 * @throws {CniError} 11
 */
export async function within<T>(limitMs: number, action: string, work: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    const is = `the switch has not answered within ${limitMs} ms`;
    late.reject(
      new CniError(CniCode.tryAgainLater, `Cannot ${action}: ${is}, wanted it to`, { details: whereToLook() }),
    );
  }, limitMs);
  try {
    return await Promise.race([work, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
