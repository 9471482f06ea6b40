/**
 * The allocator: node-local addresses on SQLite, a drop-in for host-local.
 *
 * The plugin and the agent open the same file, each in its own process; every call is one
 * transaction. Others use what is listed here and nothing else of this folder.
 */
export { type RangeUsage, withholding } from "./allocate/usage.ts";
export { Allocator } from "./allocator.ts";
export { readBootId } from "./allocator-env.ts";
export {
  dataDirOf,
  type IpamConfig,
  type IpamRequest,
  parseIpamConfig,
} from "./config/ipam-config.ts";
export type { Range, RangeSet } from "./config/ranges.ts";
export { takeOver } from "./host-local/take-over.ts";
export { type Allocation, isStaleLease, type Lease, type LeaseState, type LeftState, leaseStates } from "./lease.ts";
export { runIpamPlugin } from "./plugin.ts";
export { isNameless } from "./recovery/integrity.ts";
export { openVerified } from "./recovery/open-verified.ts";
export { StoreWatch } from "./recovery/store-watch.ts";
export { ipamResult, readDns } from "./result.ts";

/** `pipette ipam …`; loaded on demand, so that the plugin, which imports this file too, does not load it. */
export const loadIpamCommands = async () => (await import("./cli/commands.ts")).ipamCommands;

/** The database's check, its repair, and its snapshot for readers; loaded on demand, as the commands are. */
export const loadCheck = () => import("./check/mod.ts");

/** Leases and pools as documents have them; only the agent's answers to operators need them. */
export const loadViews = () => import("./cli/views.ts");

/** The unknown keys of an `ipam` section; only checks need them. */
export const loadUnknownKeys = () => import("./config/unknown-keys.ts");

/** Who had which address; only the agent writes it, and only people ask. */
export const loadHistory = () => import("./history/mod.ts");
