/**
 * OpenFlow 1.5 with the extensions of Open vSwitch that a pipeline of registers,
 * connection tracking and learned flows needs. A client of the wire without policy: which flows there are is the data
 * paths'. Matches, actions, flows and groups are data, checked when they are made; `flowText` prints them as ovs-ofctl
 * does.
 */
export {
  type Action,
  bits,
  ctClear,
  load,
  move,
  output,
  outputTo,
  resubmit,
  setField,
  throughMeter,
  toController,
  toGroup,
  whole,
} from "./action.ts";
export { OpenFlowClient } from "./client.ts";
export type { ConnectionEvent } from "./connection.ts";
export { ct } from "./conntrack.ts";
export { Port } from "./constants.ts";
export { type Flow, flow } from "./flow.ts";
export { flowText, groupText, instructionsText } from "./flow-text.ts";
export { addFlow, deleteFlow, deleteFlows, type InstalledFlow } from "./flow-wire.ts";
export {
  addOrModifyGroup,
  deleteGroup,
  group,
  type OpenFlowGroup,
} from "./group.ts";
export { learn, learnLoad, learnMatch } from "./learn.ts";
export { type MatchBuilder, match } from "./match.ts";
export { matchText } from "./match-text.ts";
export type { PacketIn } from "./message.ts";
export { addMeter, meter, modifyMeter, type OpenFlowMeter } from "./meter.ts";
export { OpenFlowError } from "./openflow-error.ts";
export type { Request as OpenFlowRequest } from "./request.ts";
export { flushConnections, forwardPackets, forwardRequests, packetOut, setConfig } from "./switch-requests.ts";
export { parseAddress } from "./transport.ts";
