/**
 * Puts Pipette on a node and takes it off again: executables, the agent's first configuration, the service. Each
 * command makes a plan by looking, shows it or carries it out, and can be run again.
 */
export { installCommand } from "./install-command.ts";
export { uninstallCommand } from "./uninstall-command.ts";
