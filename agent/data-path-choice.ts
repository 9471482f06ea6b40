import { CniCode, CniError } from "../shared/errors.ts";
import type { Logger } from "../shared/log.ts";
import { isWindows } from "../shared/os/platform.ts";
import type { AgentDependencies } from "./agent.ts";
import type { AgentConfig, NetworkConfig } from "./config/agent-config.ts";
import { takePsk } from "./config/ipsec-secret.ts";
import type { HnsNetwork } from "./datapath/hns/mod.ts";
import type { IpsecCredentials } from "./datapath/ovs/mod.ts";

export type DataPathChoice = Pick<
  AgentDependencies,
  "prepareNode" | "createDataPath" | "dataPathName" | "livenessProbes" | "dataPathLost"
>;

/** Says what is wrong if this system does not have the configured data path. */
export function wrongSystem({ dataPath }: Pick<AgentConfig, "dataPath">): string | undefined {
  if ((dataPath === "hns") === isWindows) return undefined;
  const systems = { bridge: "Linux", ovs: "Linux", hns: "Windows" };
  return `"dataPath" is "${dataPath}", which ${systems[dataPath]} has, wanted "${isWindows ? "hns" : "bridge"}"`;
}

/**
 * Loads the data path that the configuration names, and no other.
 * @throws {CniError} code 7 where this system has no such data path
 */
export function chooseDataPath(config: AgentConfig, logger: Logger): Promise<DataPathChoice> {
  const is = wrongSystem(config);
  if (is !== undefined) throw new CniError(CniCode.invalidConfig, `Cannot run the agent: ${is}`);
  const choices = { bridge: () => bridge(logger), ovs: () => ovs(config, logger), hns: () => hns(config, logger) };
  return choices[config.dataPath]();
}

async function bridge(logger: Logger): Promise<DataPathChoice> {
  const { bridgeClusterOf, createBridgeDataPath } = await import("./datapath/bridge/mod.ts");
  const { addressesInNamespaces } = await import("./protocols/netlink/mod.ts");
  const { namespaceProbe } = await import("./reconcile/mod.ts");
  return {
    createDataPath: ({ config, cluster, leasedTo }) => {
      const joined = cluster === undefined ? {} : { cluster: bridgeClusterOf(config, cluster) };
      const services = config.services === undefined ? {} : { services: config.services };
      return createBridgeDataPath({ networks: config.networks, ...joined, ...services, leasedTo, logger });
    },
    dataPathName: "bridge",
    livenessProbes: [namespaceProbe(addressesInNamespaces)],
  };
}

async function ovs(config: AgentConfig, logger: Logger): Promise<DataPathChoice> {
  const { dataDir, ovs: section, networks } = config;
  const credentials = ipsecCredentials(config);
  const { createOvsDataPath, restoreNodeAddresses } = await import("./datapath/ovs/linux/mod.ts");
  const { ovsOptionsFromConfig } = await import("./datapath/ovs/mod.ts");
  const { addressesInNamespaces } = await import("./protocols/netlink/mod.ts");
  const { namespaceProbe } = await import("./reconcile/mod.ts");
  const { uplink } = section ?? {};
  const [network] = networks;
  return {
    prepareNode: () => {
      if (uplink !== undefined && network !== undefined) restoreNodeAddresses(dataDir, uplink, network.bridge, logger);
    },
    createDataPath: (needs) => createOvsDataPath(ovsOptionsFromConfig(needs, logger, credentials)),
    dataPathName: "ovs",
    livenessProbes: [namespaceProbe(addressesInNamespaces)],
  };
}

/** Where IPsec encrypts. @throws {CniError} 7, 5 */
function ipsecCredentials({ ovs: section, socket }: AgentConfig): IpsecCredentials | undefined {
  if (section?.encryption !== "ipsec") return undefined;
  return { kind: "psk", secret: takePsk({ file: section.ipsec.pskFile, socket }, process.env) };
}

async function hns(config: AgentConfig, logger: Logger): Promise<DataPathChoice> {
  const { createHnsDataPath, createNodeSide, createOverlayDataPath } = await import("./datapath/hns/mod.ts");
  const { ovsOptionsFromConfig } = await import("./datapath/ovs/mod.ts");
  const { openHcn } = await import("./protocols/hcn/mod.ts");
  const { openHostRunner } = await import("./datapath/hns/windows-host/mod.ts");
  const lost = Promise.withResolvers<string>();
  return {
    createDataPath: (needs) => {
      const { dataDir } = config;
      const run = openHostRunner();
      const side = createNodeSide(dataDir, run, logger);
      const networks = needs.config.networks.flatMap((network) => hnsNetworkOf(network, config.ovs?.gateway));
      const hns = createHnsDataPath({
        networks,
        dataDir,
        hcn: openHcn({ deadlineMs: config.hnsTimeoutMs, onLost: ({ message }) => lost.resolve(message) }),
        node: side,
        logger,
        needsCleanup: needs.needsCleanup,
        // With Open vSwitch services are flows.
        ...(config.ovs === undefined && config.services !== undefined ? { services: config.services } : {}),
      });
      const [network] = networks;
      if (config.ovs === undefined || network === undefined) return hns;
      return createOverlayDataPath({ hns, network, side, run, logger, ovs: ovsOptionsFromConfig(needs, logger) });
    },
    dataPathName: "hns",
    // A Windows namespace holds no address without an endpoint, so there is nothing else to ask.
    livenessProbes: [],
    dataPathLost: lost.promise,
  };
}

/** The check of the configuration guarantees one IPv4 subnet and the `hns` section. */
function hnsNetworkOf(network: NetworkConfig, gateway: string | undefined): HnsNetwork[] {
  const {
    name,
    subnets: [subnet],
    bridge,
    mtu,
    hns,
  } = network;
  if (hns === undefined || subnet === undefined) return [];
  const overlay = gateway === undefined ? {} : { overlayGateway: gateway };
  return [{ name, subnet, bridge, hns, ...(mtu === undefined ? {} : { mtu }), ...overlay }];
}
