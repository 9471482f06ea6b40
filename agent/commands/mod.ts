/**
 * The node agent: serves the CNI and IPAM services on a unix socket, has the data path wire the
 * pods, finishes what plugins could not, and brings store and kernel into agreement at its start.
 */
export { agentCommand } from "./agent/agent-command.ts";
export { statusCommand } from "./status/status-command.ts";
