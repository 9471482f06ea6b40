import { isWindows } from "./platform.ts";
import { uptimeNow } from "./read-now.linux.ts";
import { uptimeNow as uptimeOfWindows } from "./uptime.windows.ts";

/**
 * Milliseconds since the system has booted: one clock for all of its processes, which nobody can set. By it they tell
 * each other when something was; the time of day may be another one in between. `undefined` where the system does not say.
 */
export const uptimeMs: () => number | undefined = isWindows ? uptimeOfWindows : uptimeNow;
