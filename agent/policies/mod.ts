/**
 * Network policies on a node: what the controller says of them, the rules that follow for the node's own pods, and what
 * the data path is to enforce.
 */
export { readEvent } from "./events.ts";
export { PolicySet } from "./policy-set.ts";
export { RuleStore } from "./rule-store.ts";
