/**
 * The Open vSwitch data path on Linux: one bridge that carries the node's pods, gateway and tunnel, and an OpenFlow
 * pipeline that decides where each packet goes. `OvsNode` is the part that knows nothing of pods' interfaces.
 */

export { cleanUpOvs } from "./linux/clean-up.ts";
export { restoreNodeAddresses } from "./linux/linux-host.ts";
export { createOvsDataPath } from "./linux/ovs-datapath.ts";
export { ovsOptionsFromConfig } from "./options-from-config.ts";
