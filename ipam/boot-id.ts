import { isWindows } from "../shared/platform.ts";

/**
 * Names the boot that the system is in; never fails. Empty where there is no such name: Windows keeps
 * none that survives clock changes, and a lease without one is never suspect for its boot.
 */
export async function readBootId(): Promise<string> {
  if (isWindows) return "";
  try {
    return (await Bun.file("/proc/sys/kernel/random/boot_id").text()).trim();
  } catch {
    return "";
  }
}
