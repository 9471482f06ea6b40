import { isWindows } from "../../../shared/os/platform.ts";
import { installCommandWith } from "./install-command.ts";
import type { ServiceInstaller } from "./service.ts";
import { uninstallCommandWith } from "./uninstall-command.ts";

/**
 * Puts Pipette on a node and takes it off again: executables, the agent's first configuration, the service. Each
 * command makes a plan without changing anything, shows it or carries it out, and can be repeated.
 */
export const installCommand = installCommandWith(openServiceInstaller);
export const uninstallCommand = uninstallCommandWith(openServiceInstaller);

/** systemd, or the service control manager. */
async function openServiceInstaller(): Promise<ServiceInstaller> {
  return isWindows
    ? (await import("./windows-service.windows.ts")).openWindowsService()
    : (await import("./systemd.linux.ts")).openSystemd();
}
