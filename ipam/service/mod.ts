/**
 * The allocator as a gRPC service, by itself and for other servers. Long-lived programs use it;
 * a plugin, which lives for milliseconds, never loads it.
 */

export { ipamRunner } from "./forwarded.ts";
export { ownerIn } from "./ipam-request.ts";
export { type Collected, gcAnswer, type IpamHost, ipamRpcs } from "./ipam-rpcs.ts";
export { type IpamServerConfig, ipamServerName, startIpamServer } from "./ipam-server.ts";
