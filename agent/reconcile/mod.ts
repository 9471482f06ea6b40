/**
 * What the node should have against what it has: the plan of a start, the loop that goes on with it, GC, and the one way
 * in which anything beside ADD, CHECK and DEL changes an attachment (`reconcile-owner.ts`).
 */
export { type AgentContext, StartingContext } from "./agent-context.ts";
export { collect } from "./gc.ts";
export { Janitor } from "./janitor.ts";
export { type LivenessProbe, namespaceProbe } from "./liveness-probes.ts";
export { reconcile, takeNetworksOver } from "./reconcile.ts";
export { detachAndEnd } from "./reconcile-owner.ts";
export { repairOwner } from "./repair.ts";
export { knowsEveryOwner } from "./restore.ts";
export { reclaimStaleLease } from "./stale-leases.ts";
