/** Keeps the wanted content in a node's switch, through restarts of the switch and of the agent. */
export { OpenFlowProgram, type ProgramOptions } from "./openflow-program.ts";
export { StableIds } from "./stable-ids.ts";
