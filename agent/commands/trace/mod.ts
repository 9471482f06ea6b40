/**
 * `pipette trace`: a packet's way through the tables of Open vSwitch in words, from `ofproto/trace` of ovs-vswitchd. It
 * asks the switch and its database themselves, so it works while the agent does not run.
 */
export { traceCommand } from "./trace-command.ts";
