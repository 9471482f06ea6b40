/** What a node's switch is to have, kept there: through restarts of the switch, and from one start of the agent to the next. */
export { OpenFlowProgram, type ProgramOptions } from "./openflow-program.ts";
export { StableIds } from "./stable-ids.ts";
