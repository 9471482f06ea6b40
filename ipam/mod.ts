/**
 * The allocator: node-local addresses on SQLite, a drop-in for host-local.
 *
 * The plugin and the agent open the same file, each in its own process; every call is one
 * transaction. Others use what is listed here and nothing else of this folder.
 */
export type { Lease, LeaseState } from "./lease.ts";
