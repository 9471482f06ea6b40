/** The Open vSwitch data path on Linux. `clean-up.ts` is a face of its own: a clean-up loads nothing of what runs. */
export { restoreNodeAddresses } from "./linux-host.ts";
export { createOvsDataPath } from "./ovs-datapath.ts";
