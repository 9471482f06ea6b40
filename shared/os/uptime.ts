import { isWindows } from "./platform.ts";
import { uptimeNow } from "./read-now.linux.ts";
import { uptimeNow as uptimeOfWindows } from "./uptime.windows.ts";

/**
 * Milliseconds since the system booted: one clock for all of its processes, which cannot be set. Processes use it to
 * exchange points in time, because the time of day may be changed in between. `undefined` where the system does not
 * tell.
 */
export const uptimeMs: () => number | undefined = isWindows ? uptimeOfWindows : uptimeNow;
