/**
 * The agent as a service of Windows: from within (`enterService`), and from outside, for the installer
 * (`openServiceManager`). A wire client of the service control manager, without policy.
 */
export { commandLine } from "./command-line.ts";
export { enterService } from "./service-host.windows.ts";
export { openServiceManager, type ServiceManager } from "./service-manager.windows.ts";
export { serviceState } from "./service-status.ts";

/** Under which the service control manager knows the agent. */
export const serviceName = "pipette-agent";
