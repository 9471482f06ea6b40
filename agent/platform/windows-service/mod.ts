/**
 * The agent as a service of Windows: from within (`enterService`), and from outside, for the installer
 * (`openServiceManager`). A wire client of the service control manager, without policy.
 */
export { enterService } from "./service-host.windows.ts";
export { openServiceManager, type ServiceManager } from "./service-manager.windows.ts";
export { commandLine, serviceState } from "./structures.ts";
