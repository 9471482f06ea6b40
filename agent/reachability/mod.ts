/** Whether other nodes' pods are reached, and how fast: an echo by the way that their packets take. */
export { PeerProbes, type PeerProbesOptions } from "./peer-probes.ts";
export type { PeerTrouble } from "./troubles.ts";
