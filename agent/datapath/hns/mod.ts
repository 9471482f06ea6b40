/** Pods as endpoints of Windows' Host Networking Service; where Open vSwitch forwards, as its ports too. */

import { endpointRecords } from "./endpoint-records.ts";
import { hostRecords } from "./windows-host/mod.ts";

export { removeOverlay } from "../ovs/mod.ts";
export { EndpointRecords, endpointRecords } from "./endpoint-records.ts";
export { createHnsDataPath } from "./hns-datapath.ts";
export { createNodeSide } from "./node-side.ts";
export type { HnsNetwork } from "./options.ts";
export { createOverlayDataPath } from "./overlay-datapath.ts";
export { removeServices } from "./services/mod.ts";

/** The directories with this data path's records; not empty while something of ours is on the node. */
export const recordDirectories = (dataDir: string): readonly string[] => [
  hostRecords(dataDir),
  endpointRecords(dataDir),
];
