/**
 * Reconciles the node's attachments with the store: the plan at the start, the janitor's loop, GC, and the one way in
 * which anything other than ADD, CHECK and DEL changes an attachment (`reconcile-owner.ts`).
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
