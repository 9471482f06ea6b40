import { isWindows } from "../shared/os/platform.ts";
import { readFileNow } from "../shared/os/read-now.linux.ts";

/** What the allocator takes from the system: the boot and the time. */
export interface AllocatorEnv {
  /** Empty: unknown. */
  readonly bootId: string;
  /** Milliseconds since 1970. */
  now(): number;
  /** Where the database lies; absent: in memory. */
  readonly dataDir?: string;
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
