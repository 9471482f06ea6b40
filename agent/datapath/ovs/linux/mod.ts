/** The Open vSwitch data path on Linux. `clean-up.ts` stands beside it, since a clean-up loads none of what runs. */
export { restoreNodeAddresses } from "./linux-host.ts";
export { createOvsDataPath } from "./ovs-datapath.ts";
