/**
 * The node's part of an Open vSwitch overlay, the same on both systems: one bridge that carries the node's pods, gateway
 * and tunnel, and an OpenFlow pipeline that decides where each packet goes. It knows nothing of pods' interfaces:
 * `linux/mod.ts` is the data path on Linux, HNS has its own.
 */
export { openDatabase } from "./database/mod.ts";
export { removeOverlay } from "./database/node-bridge.ts";
export {
  type IpsecCredentials,
  type OvsDataPathOptions,
  type OvsNodeOptions,
  ovsOptionsFromConfig,
  servicesOf,
} from "./options.ts";
export type { ConnectedPod, HostNetwork, OverlayNode, PodPort } from "./overlay-node.ts";
export { OvsNode } from "./ovs-node.ts";
export { OvsPolicies } from "./policies/ovs-policies.ts";
export { withCniErrors } from "./switch-presence.ts";
