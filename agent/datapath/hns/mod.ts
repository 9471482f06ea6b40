import { endpointRecords } from "./endpoint-records.ts";
import { hostRecords } from "./windows-host/mod.ts";

/** Pods as endpoints of Windows' Host Networking Service; where Open vSwitch forwards, as its ports too. */

export { removeOverlay } from "../ovs/mod.ts";
export { createOverlayDataPath } from "./create-overlay.ts";
export { EndpointRecords, endpointRecords } from "./endpoint-records.ts";
export { createHnsDataPath } from "./hns-datapath.ts";
export { createNodeSide } from "./node-side.ts";
export type { HnsNetwork } from "./options.ts";

/** Where records of this data path lie: there is something in them while something of ours is on the node. */
export const recordDirectories = (dataDir: string): readonly string[] => [
  hostRecords(dataDir),
  endpointRecords(dataDir),
];
