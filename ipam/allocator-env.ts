import { isWindows } from "../shared/os/platform.ts";
import { readFileNow } from "../shared/os/read-now.linux.ts";
import type { Lease } from "./lease.ts";

/** What the allocator takes from the system: the boot and the time. */
export interface AllocatorEnv {
  /** Empty: unknown. */
  readonly bootId: string;
  /** Milliseconds since 1970. */
  now(): number;
  /** Where the database lies; absent: in memory. */
  readonly dataDir?: string;
  /**
   * Told of each lease that begins to cool, with the time at which its owner left it, inside of the transaction; and
   * whether there was ever a pod behind it, which an ADD that failed has not. Only the agent listens.
   */
  readonly ended?: ((lease: Lease, wasHeld: boolean) => void) | undefined;
}

/** A UUID and a line's end. */
const bootIdBytes = 64;

/**
 * Names the boot that the system is in; never fails. Empty where the system has no such name, as on Windows, which has
 * none that survives clock changes; a lease without one is never stale.
 */
export function readBootId(): string {
  const bytes = isWindows ? undefined : readFileNow("/proc/sys/kernel/random/boot_id", bootIdBytes);
  return new TextDecoder().decode(bytes).trim();
}
