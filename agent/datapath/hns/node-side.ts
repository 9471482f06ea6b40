import type { Logger } from "../../../shared/log.ts";
import { type HostRunner, type HostSettings, handBackAddress, prepareHost, setUpHost } from "../../windows-host/mod.ts";
import { networkGateway } from "./documents.ts";
import type { HnsNetwork, NodeSide } from "./options.ts";

/** The node's side of HNS networks, as the configuration asks for it. */
export function createNodeSide(dataDir: string, run: HostRunner, logger: Logger): NodeSide {
  return {
    prepare: (network) => {
      const { adapter } = network.hns;
      return prepareHost({ ...settingsOf(network, dataDir), ...(adapter === undefined ? {} : { adapter }) }, run);
    },
    async setUp(network) {
      const { changes } = await setUpHost(settingsOf(network, dataDir), run);
      const made = changes.filter(({ did }) => did !== "was there");
      if (made.length > 0) logger.info("set the node up", { network: network.name, changes: made });
    },
    async handBack(network) {
      const { changes } = await handBackAddress(dataDir, run, network.hns.network);
      logger.info("the node's card has its address back", { changes });
    },
  };
}

function settingsOf({ subnet, bridge, mtu, hns }: HnsNetwork, dataDir: string): HostSettings {
  return {
    dataDir,
    nodeAddress: hns.nodeAddress,
    podSubnet: subnet,
    gateway: networkGateway(subnet),
    gatewayInterface: bridge,
    bridgeName: bridge,
    natName: hns.natName,
    ...(mtu === undefined ? {} : { mtu }),
    peers: hns.peers,
    ovsExtension: hns.ovsExtension,
    hnsNetwork: hns.network,
  };
}
