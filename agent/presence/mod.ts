/** What the cluster is told of this node: that its agent is alive, and how it is. */
export { openNodePresence, type ReadDocument } from "./open-presence.ts";
