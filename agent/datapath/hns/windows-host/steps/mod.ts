import { address } from "./address.ts";
import { gatewayAddress, gatewayMac, gatewayUp } from "./gateway.ts";
import { forwarding, mtu } from "./interface.ts";
import { nat } from "./nat.ts";
import { neighbours, nodeRoutes, peerRoutes, podRoute } from "./routes.ts";
import type { Step } from "./step.ts";
import { adapterAlias, ovsExtension, softwareRsc, switchAdapterName } from "./switch.ts";

/** The switch that the HNS network came with. */
const ofSwitch: readonly Step[] = [switchAdapterName, adapterAlias, address, ovsExtension, softwareRsc];

/** The gateway interface and what leads to it. */
const ofGateway: readonly Step[] = [gatewayUp, gatewayMac, gatewayAddress, forwarding, mtu, podRoute, peerRoutes, nat];

/** What comes and goes with nodes and services. */
const ofRoutes: readonly Step[] = [nodeRoutes, neighbours];

/** The set-up of a node, in its order; clean-up goes backwards. */
export const steps: readonly Step[] = [...ofSwitch, ...ofGateway, ...ofRoutes];

/**
 * Which steps a set-up goes through, and takes back where they are no longer asked for. An Open vSwitch bridge with the
 * gateway as its internal port comes between `switch` and `gateway`.
 */
export const hostParts = { whole: steps, switch: ofSwitch, gateway: ofGateway, routes: ofRoutes } as const;
export type HostPart = keyof typeof hostParts;
