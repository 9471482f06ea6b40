/** Following single packets through the node's switch: injected ones, and the first ones of real connections. */
export { OvsTracing, type TracedNode } from "./ovs-tracing.ts";
export { waysText } from "./ways-text.ts";
