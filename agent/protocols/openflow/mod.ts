/**
 * OpenFlow 1.5, and 1.3 where a switch has no other, with the extensions of Open vSwitch that a pipeline of registers,
 * connection tracking and learned flows needs. A client of the wire without policy: which flows there are is the data
 * paths'. Matches, actions, flows and groups are data, checked when they are made; `flowText` prints them as ovs-ofctl
 * does.
 */
export {
  type Action,
  bits,
  conjunction,
  controller,
  ctClear,
  decTtl,
  load,
  move,
  note,
  output,
  outputTo,
  popVlan,
  pushVlan,
  resubmit,
  setField,
  throughMeter,
  toGroup,
  whole,
} from "./action.ts";
export { parseAddress } from "./address.ts";
export { type ClientOptions, OpenFlowClient } from "./client.ts";
export type { ConnectionEvent } from "./connection.ts";
export { flushConnections } from "./connection-flush.ts";
export { ct } from "./conntrack.ts";
export { Port, Version } from "./constants.ts";
export { type Flow, flow } from "./flow.ts";
export { addFlow, deleteFlow, deleteFlows, modifyFlow, modifyFlows } from "./flow-mod.ts";
export { flowText } from "./flow-text.ts";
export {
  addGroup,
  addOrModifyGroup,
  deleteAllGroups,
  deleteGroup,
  group,
  insertBuckets,
  modifyGroup,
  type OpenFlowGroup,
  removeBucket,
} from "./group.ts";
export { groupText } from "./group-text.ts";
export { learn, learnLoad, learnMatch } from "./learn.ts";
export { type MatchBuilder, match } from "./match.ts";
export { addMeter, deleteAllMeters, deleteMeter, meter, modifyMeter, type OpenFlowMeter } from "./meter.ts";
export { OpenFlowError } from "./openflow-error.ts";
export { type PacketIn, packetOut, resumePacket, usePacketIn2 } from "./packet.ts";
export type { Request as OpenFlowRequest } from "./request.ts";
export { setAsync, setConfig } from "./switch-config.ts";
