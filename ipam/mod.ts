/**
 * The allocator: node-local addresses on SQLite, a drop-in for host-local.
 *
 * The plugin and the agent open the same file, each in its own process; every call is one
 * transaction. Others use what is listed here and nothing else of this folder.
 */
export type { RangeUsage } from "./allocate/usage.ts";
export { withholding } from "./allocate/withhold.ts";
export { type Allocation, Allocator, type LeftState } from "./allocator.ts";
export { readBootId } from "./boot-id.ts";
export {
  dataDirOf,
  type IpamConfig,
  type IpamRequest,
  parseIpamConfig,
} from "./config/ipam-config.ts";
export type { Range, RangeSet } from "./config/ranges.ts";
export { takeOver } from "./host-local/take-over.ts";
export { type Lease, type LeaseState, leaseStates } from "./lease.ts";
export { loadCheck, loadStrangeKeys } from "./load-check.ts";
export { loadIpamCommands } from "./load-commands.ts";
export { runIpamPlugin } from "./plugin.ts";
export { isNameless } from "./recovery/hold.ts";
export { openVerified } from "./recovery/open-verified.ts";
export { StoreWatch } from "./recovery/store-watch.ts";
export { ipamResult, readDns } from "./result.ts";
export { hasSuspects, ofAnotherBoot } from "./suspects.ts";
