import { CniCode, CniError } from "../../../shared/errors.ts";
import type { Logger } from "../../../shared/log.ts";
import { type Cidr, formatCidr, formatIp, gatewayIn, hostBlock, parseCidr } from "../../../shared/net/ip.ts";
import type { HostNetwork } from "../ovs/mod.ts";
import type { NodeRoute, RefusedRoute } from "../routes.ts";
import type { HnsNetwork, NodeSide } from "./options.ts";
import {
  type GatewayPort,
  type HostPart,
  type HostRunner,
  type HostSettings,
  handBackAddress,
  nodeInterface,
  prepareHost,
  type RefusedThing,
  type SettingsRoute,
  savedAdapter,
  setUpHost,
} from "./windows-host/mod.ts";

/** The card that an HNS network has taken. */
export interface OverlayCard {
  readonly name: string;
  /** As `00:15:5d:01:02:03`; the switch's adapter has the same. */
  readonly mac: string;
  /** The node's own, which is on the switch's adapter now. */
  readonly address: Cidr;
}

/** The parts of the node that an overlay needs. */
export interface OverlaySide {
  /** The adapter that becomes the bridge's uplink. @throws {CniError} 102 if it is not on record */
  cardOf(network: HnsNetwork): OverlayCard;
  /** The node's own network around the bridge; `again` repeats what was done last. */
  hostNetworkOf(network: HnsNetwork): HostNetwork & { again(): Promise<void> };
}

/** Windows has moved the node's addresses to the switch's adapter, which the bridge's own port is. */
const keptBySystem = {
  hasInterface: async () => true,
  moveAddresses: async () => undefined,
  keepAddresses: async () => undefined,
  // Nothing to do: the extension takes packets before the system sees them.
  leaveToSwitch: async () => undefined,
};

/** The node's side of HNS networks, as the configuration asks for it. */
export function createNodeSide(dataDir: string, run: HostRunner, logger: Logger): NodeSide & OverlaySide {
  const inTurn = turns();
  const setUp = (settings: HostSettings, network: HnsNetwork, part: HostPart): Promise<readonly RefusedThing[]> =>
    inTurn(async () => {
      const { changes, refused = [] } = await setUpHost(settings, run, part);
      const made = changes.filter(({ did }) => did !== "was there");
      if (made.length > 0) logger.info("set the node up", { network: network.name, changes: made });
      return refused;
    });
  const cardOf = ({ hns: { network } }: HnsNetwork): OverlayCard => {
    const { name, mac, address = "" } = savedAdapter(dataDir, network) ?? {};
    const parsed = parseCidr(address);
    if (name !== undefined && parsed !== undefined)
      return { name, mac: (mac?.match(/../g) ?? []).join(":"), address: parsed };
    const is = "no record says which it was, as the network was made by others";
    throw new CniError(
      CniCode.interfaceFailure,
      `Cannot find the card of the HNS network "${network}": ${is}, wanted that network deleted, to be made again`,
    );
  };
  return {
    prepare: (network) => {
      const { adapter } = network.hns;
      const settings = { ...settingsOf(network, dataDir), ...(adapter === undefined ? {} : { adapter }) };
      return inTurn(() => prepareHost(settings, run));
    },
    setUp: async (network) => {
      await setUp(settingsOf(network, dataDir), network, network.overlayGateway === undefined ? "whole" : "switch");
    },
    handBack: (network) =>
      inTurn(async () => {
        const { changes } = await handBackAddress(dataDir, run, network.hns.network);
        logger.info("the node's card has its address back", { changes });
      }),
    nodeInterface: ({ hns }) => inTurn(() => nodeInterface(hns.nodeAddress, run)),
    cardOf,
    hostNetworkOf: (network) => {
      let gateway: (() => Promise<unknown>) | undefined;
      let routes: (() => Promise<readonly RefusedThing[]>) | undefined;
      return {
        // The bridge's own port is the switch's adapter, and has the card's address already.
        macOf: async () => cardOf(network).mac,
        useGateway: async ({ mac, addresses: [address], mtu }) => {
          if (address === undefined) return;
          const settings = { ...settingsOf(network, dataDir, { mac, address }), mtu };
          gateway = () => setUp(settings, network, "gateway");
          await gateway();
        },
        ...keptBySystem,
        ownAddresses: async () => [cardOf(network).address.ip],
        setRoutes: async (wanted) => {
          const settings = {
            ...settingsOf(network, dataDir),
            routes: wanted.map((route) => toSetting(route, network)),
          };
          routes = () => setUp(settings, network, "routes");
          return refusedOf(wanted, await routes());
        },
        again: async () => {
          await gateway?.();
          await routes?.();
        },
      };
    },
  };
}

/** All steps share one record, so they run one after the other; each has a timeout. */
function turns(): <T>(work: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const done = last.then(work, work);
    last = done.catch(() => undefined);
    return done;
  };
}

function toSetting({ dst, via, by, mac }: NodeRoute, network: HnsNetwork): SettingsRoute {
  const alias = by === "gateway" ? gatewayInterfaceOf(network) : network.bridge;
  return { destination: dst, nextHop: via, alias, ...(mac === undefined ? {} : { nextHopMac: mac }) };
}

/** Routes that were refused, themselves or the route to their next hop. */
function refusedOf(routes: readonly NodeRoute[], refused: readonly RefusedThing[]): readonly RefusedRoute[] {
  const reasons = new Map(refused.map(({ thing, why }) => [thing["destination"] ?? thing["address"], why]));
  return routes.flatMap((route) => {
    const why = [formatCidr(route.dst), formatIp(route.via), formatCidr(hostBlock(route.via))]
      .map((text) => reasons.get(text))
      .find((reason) => reason !== undefined);
    return why === undefined ? [] : [{ route, why }];
  });
}

const gatewayInterfaceOf = ({ overlayGateway, bridge }: HnsNetwork): string => overlayGateway ?? bridge;

function settingsOf(network: HnsNetwork, dataDir: string, gatewayPort?: GatewayPort): HostSettings {
  const { subnet, bridge, mtu, hns } = network;
  return {
    dataDir,
    nodeAddress: hns.nodeAddress,
    podSubnet: subnet,
    gateway: gatewayIn(subnet),
    gatewayInterface: gatewayInterfaceOf(network),
    ...(gatewayPort === undefined ? {} : { gatewayPort }),
    bridgeName: bridge,
    natName: hns.natName,
    ...(mtu === undefined ? {} : { mtu }),
    peers: hns.peers,
    ovsExtension: hns.ovsExtension,
    hnsNetwork: hns.network,
  };
}
