/** The allocator as a gRPC service: a server of its own, and its RPCs for other servers. Plugins never load it. */

export { ipamRunner } from "./forwarded.ts";
export { ownerIn } from "./ipam-request.ts";
export { type Collected, gcAnswer, type IpamHost, ipamRpcs } from "./ipam-rpcs.ts";
export { type IpamServerConfig, ipamServerName, startIpamServer } from "./ipam-server.ts";
