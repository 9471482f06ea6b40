/** Pods as endpoints of Windows' Host Networking Service. */
export { EndpointRecords, endpointRecords } from "./endpoint-records.ts";
export { createHnsDataPath } from "./hns-datapath.ts";
export { createNodeSide } from "./node-side.ts";
export type { HnsNetwork } from "./options.ts";
