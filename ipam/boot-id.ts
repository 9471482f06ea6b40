import { isWindows } from "../shared/os/platform.ts";
import { readFileNow } from "../shared/os/read-now.linux.ts";

/** A UUID and a line's end. */
const bootIdBytes = 64;

/**
 * Names the boot that the system is in; never fails. Empty where there is no such name: Windows keeps
 * none that survives clock changes, and a lease without one is never suspect for its boot.
 */
export function readBootId(): string {
  const bytes = isWindows ? undefined : readFileNow("/proc/sys/kernel/random/boot_id", bootIdBytes);
  return new TextDecoder().decode(bytes).trim();
}
