/**
 * The flows of a node as data: pure functions of the node, its pods and its peers. One file per event that adds flows;
 * `tables.ts`, `registers.ts` and `cookie.ts` hold the vocabulary.
 */
export { baseFlows } from "./base.ts";
export { Priority, step } from "./build.ts";
export { rememberSource } from "./connections.ts";
export { newConnectionMeter } from "./new-connections.ts";
export { peerFlows, tunnelEndOf, wayTo } from "./peer.ts";
export { podFlows } from "./pod.ts";
export { isolationFlows, matchFlow, policyFlows, policyTables, ruleFlows, verdictMeter } from "./policies.ts";
export { selectService, serviceTables } from "./prerouting.ts";
export { markSnat, virtualAddress, virtualNodePort } from "./snat.ts";
export {
  arrivalFlows,
  injectedFlows,
  injection,
  type LookingNode,
  type Picked,
  pickFlows,
  reportFlows,
  traceCookie,
} from "./traced.ts";
export { packetsOf, peerTunnelFlows } from "./tunnel.ts";
