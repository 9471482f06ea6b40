/**
 * The Open vSwitch data path on Linux. `clean-up.ts` is imported directly, so that a clean-up does not load the data
 * path.
 */
export { restoreNodeAddresses } from "./linux-host.ts";
export { createOvsDataPath } from "./ovs-datapath.ts";
