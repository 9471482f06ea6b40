import { formatCidr } from "../../../shared/ip.ts";
import { localMac } from "../veth/names.ts";
import type { BridgeNetwork } from "./options.ts";

/** With the subnets in it: bridges of one name on two nodes may meet when somebody connects them. */
export function bridgeMac(network: BridgeNetwork): Uint8Array {
  return localMac("bridge", network.bridge, ...network.subnets.map(formatCidr));
}
