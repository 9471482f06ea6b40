import { limits } from "../../shared/limits.ts";
import type { Attachment, GcResponse } from "../../shared/proto/pipette-messages.ts";

/** What a GC has done. */
export interface Collected {
  readonly removed: readonly Attachment[];
  readonly failures: readonly string[];
}

/** Tags and lengths around a field and around an entry. */
const framingBytes = 16;

/**
 * The answer to a GC, which has to fit into one message however much was done: failures first, since the caller has to
 * come again for them, then what was removed; the rest is a number.
 */
export function gcAnswer({ removed, failures }: Collected, maxBytes: number = limits.messageBytes / 2): GcResponse {
  let room = maxBytes;
  const fits = (...texts: readonly string[]): boolean => {
    room -= texts.reduce((sum, text) => sum + Buffer.byteLength(text), framingBytes);
    return room >= 0;
  };
  const toldFailures = failures.filter((line) => fits(line));
  const told = removed.filter(({ containerId, ifname }) => fits(containerId, ifname));
  const leftOut = removed.length - told.length + failures.length - toldFailures.length;
  return { removed: told, failures: toldFailures, leftOut };
}
