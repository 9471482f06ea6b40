/** Whether other nodes' pods are reached, and how fast: an echo by the way that their packets take. */
export { PeerProbes } from "./peer-probes.ts";
