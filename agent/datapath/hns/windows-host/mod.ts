/**
 * Windows' own network settings around the HNS network: the node's card, names, forwarding, routes, NetNat, the
 * switch's extension. It makes no decisions: the data path passes the settings. Each step of `steps/` finds what is
 * right already, makes the rest, verifies it, and can be undone; changes are recorded in the data directory.
 */
export { findAdapter, nodeInterface, prepareHost } from "./adapter.ts";
export { cleanUpHost, handBackAddress } from "./clean-up.ts";
export { startedPods } from "./pod-adapters.ts";
export { type HostRunner, openHostRunner } from "./powershell.ts";
export { hostRecords, savedAdapter } from "./record.ts";
export type { Listing, Row } from "./script.ts";
export { setUpHost } from "./set-up.ts";
export type { GatewayPort, HostSettings, RefusedThing, SettingsRoute } from "./settings.ts";
export type { HostPart } from "./steps/mod.ts";
