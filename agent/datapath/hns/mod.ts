/** Pods as endpoints of Windows' Host Networking Service; where Open vSwitch forwards, as its ports too. */

export { removeOverlay } from "../ovs/mod.ts";
export { createOverlayDataPath } from "./create-overlay.ts";
export { EndpointRecords, endpointRecords } from "./endpoint-records.ts";
export { createHnsDataPath } from "./hns-datapath.ts";
export { createNodeSide } from "./node-side.ts";
export type { HnsNetwork } from "./options.ts";
