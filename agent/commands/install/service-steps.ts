import { isWindows } from "../../../shared/os/platform.ts";
import type { Step } from "./step.ts";

/** What the service is to run. */
export interface ServiceDefinition {
  readonly executable: string;
  readonly configFile: string;
  /** Where it keeps its leases, and its log where the system keeps none. */
  readonly dataDir: string;
  /** Where it writes the runtime's configuration. */
  readonly confDir: string;
  readonly socket: string;
}

export interface ServiceWish {
  /** The executable is another than the one that may be running. */
  readonly executableChanged: boolean;
  /** Only registered, and started with the system. */
  readonly leaveStopped: boolean;
}

/** The system's own keeper of services; plans are made by looking only. */
export interface ServiceKeeper {
  planInstall(definition: ServiceDefinition, wish: ServiceWish): Promise<readonly Step[]>;
  /** Stops and removes; the service's data stay. */
  planRemoval(): Promise<readonly Step[]>;
}

/** systemd, or the service control manager. */
export async function openServiceKeeper(): Promise<ServiceKeeper> {
  return isWindows
    ? (await import("./windows-service.windows.ts")).openWindowsKeeper()
    : (await import("./systemd.linux.ts")).openSystemd();
}
