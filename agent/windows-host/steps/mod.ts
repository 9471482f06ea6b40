import { address } from "./address.ts";
import { forwarding, mtu } from "./interface.ts";
import { adapterAlias, switchAdapterName } from "./names.ts";
import { nat } from "./nat.ts";
import { peerRoutes, podRoute } from "./routes.ts";
import type { Step } from "./step.ts";
import { ovsExtension, softwareRsc } from "./switch.ts";

/**
 * The set-up of a node, in its order; clean-up goes backwards. First the switch that the HNS network came with,
 * then the gateway interface and what leads to it. An Open vSwitch bridge, its ports and the gateway as its
 * internal port belong between the two.
 */
export const steps: readonly Step[] = [
  switchAdapterName,
  adapterAlias,
  address,
  ovsExtension,
  softwareRsc,
  forwarding,
  mtu,
  podRoute,
  peerRoutes,
  nat,
];
