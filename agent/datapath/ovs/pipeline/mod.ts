/**
 * The flows of a node as data: functions of what the node is, what is on it and who its peers are, without any state.
 * One file per event that brings flows; `tables.ts`, `registers.ts` and `cookie.ts` hold the vocabulary.
 */
export { baseFlows } from "./base.ts";
export { Priority, step } from "./build.ts";
export { rememberSource } from "./connections.ts";
export { newConnectionMeter } from "./new-connections.ts";
export { peerFlows, wayTo } from "./peer.ts";
export { podFlows } from "./pod.ts";
export { markSnat, virtualAddress } from "./snat.ts";
export { packetsOf } from "./tunnel.ts";
