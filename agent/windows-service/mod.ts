/**
 * The agent as a service of Windows: from within (`enterService`), and from outside, for the installer
 * (`openServiceManager`). A wire client of the service control manager, without policy.
 */
export { enterService } from "./service-host.windows.ts";

/** Under which the service control manager knows the agent. */
export const serviceName = "pipette-agent";
