/**
 * What every node needs of the cluster's network policies: policies with the names of groups instead of selectors, groups
 * with their members, and the nodes that each concerns.
 */
export type { ComputedPolicy } from "./computed-policy.ts";
export { AddressGroup, AppliedToGroup } from "./groups.ts";
export { type Changes, type NodeState, type PolicyChange, PolicyComputation } from "./policy-computation.ts";
export type { MembersChange } from "./since-last-look.ts";
export {
  addressMember,
  groupMessage,
  metadataOf,
  patchMessage,
  podMessage,
  policyMessage,
  policyReference,
  targetMember,
} from "./wire-messages.ts";
