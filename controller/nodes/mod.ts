/** The state of nodes in the cluster, as their agents tell it. */
export { NodeKeeper } from "./node-keeper.ts";
