/**
 * The Open vSwitch data path on Linux: one bridge that carries the node's pods, gateway and tunnel, and an OpenFlow
 * pipeline that decides where each packet goes. `OvsNode` is the part that knows nothing of pods' interfaces.
 */
export { ovsOptionsOf } from "./configured.ts";
export { cleanUpOvs } from "./linux/clean-up.ts";
export { findNodeAddresses } from "./linux/linux-host.ts";
export { createOvsDataPath } from "./ovs-datapath.ts";
