/**
 * The kernel-bridge data path: per network a bridge with the gateway addresses, per pod a veth pair.
 *
 * All state is in the kernel: the host end of every pair carries its owner in its alias and in a second name, so that a
 * restarted agent finds everything again.
 */
export { createBridgeDataPath } from "./bridge-datapath.ts";
export { cleanUpBridges } from "./clean-up.ts";
export type { BridgeNetwork } from "./options.ts";
export { bridgeClusterOf } from "./options.ts";
