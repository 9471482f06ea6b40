import { isWindows } from "../os/platform.ts";
import type { System } from "./system.ts";

/** The system that this process runs on. */
export async function openSystem(): Promise<System> {
  return isWindows
    ? (await import("./system.windows.ts")).openWindowsSystem()
    : (await import("./system.linux.ts")).openLinuxSystem();
}
