/** Under which systemd and Windows' service control manager know the agent. */
export const serviceName = "pipette-agent";

/** What the agent's service is to run. */
export interface ServiceDefinition {
  readonly executable: string;
  readonly configFile: string;
  /** Where it keeps its leases, and its log where the system keeps none. */
  readonly dataDir: string;
  /** Where it writes the runtime's configuration. */
  readonly confDir: string;
  readonly socket: string;
}
