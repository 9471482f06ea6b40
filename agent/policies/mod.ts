/**
 * Network policies on a node: what the controller says of them, the rules that follow for the node's own pods, and what
 * the data path is to enforce.
 */
export { controllerAccess, controllerAsked } from "./controller-access.ts";
export { NodePolicies } from "./node-policies.ts";
export { policed } from "./policed-data-path.ts";
