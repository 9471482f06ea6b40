import type { ServiceDefinition } from "../../platform/agent-service.ts";
import type { Step } from "./plan.ts";

export interface ServiceWish {
  /** The executable is another than the one that may be running. */
  readonly executableChanged: boolean;
  /** Only registered, and started with the system. */
  readonly leaveStopped: boolean;
}

/** Plans what makes the agent a service of this system, and what undoes that; plans are made by looking only. */
export interface ServiceInstaller {
  planInstall(definition: ServiceDefinition, wish: ServiceWish): Promise<readonly Step[]>;
  /** Stops and removes; the service's data stay. */
  planRemoval(): Promise<readonly Step[]>;
}
