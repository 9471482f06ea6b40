import { CniCode, CniError } from "../shared/errors.ts";
import type { Logger } from "../shared/log.ts";
import { isWindows } from "../shared/os/platform.ts";
import { reasonOf } from "../shared/reason.ts";
import type { AgentDependencies } from "./agent-dependencies.ts";
import { trustAuthorities } from "./certificates/trusted-authorities.ts";
import type { AgentConfig, NetworkConfig } from "./config/agent-config.ts";
import { usualTrustDirectory } from "./config/certificates-config.ts";
import { pskVariables, takePsk } from "./config/ipsec-secret.ts";
import { nameOf } from "./config/nodes-config.ts";
import type { DataPathNeeds } from "./datapath/datapath.ts";
import type { HnsNetwork } from "./datapath/hns/mod.ts";
import type { IpsecCredentials } from "./datapath/ovs/mod.ts";
import type { AgentMeter } from "./metrics/meter.ts";

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
export function chooseDataPath(config: AgentConfig, logger: Logger, meter?: AgentMeter): Promise<DataPathChoice> {
  const is = wrongSystem(config);
  if (is !== undefined) throw new CniError(CniCode.invalidConfig, `Cannot run the agent: ${is}`);
  const choices = {
    bridge: () => bridge(logger),
    ovs: () => ovs(config, logger),
    hns: () => hns(config, logger, meter),
  };
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
  const credentials = await ipsecCredentials(config, logger);
  const { createOvsDataPath, restoreNodeAddresses } = await import("./datapath/ovs/linux/mod.ts");
  const { ovsOptionsFromConfig } = await import("./datapath/ovs/mod.ts");
  const { addressesInNamespaces } = await import("./protocols/netlink/mod.ts");
  const { namespaceProbe } = await import("./reconcile/mod.ts");
  const { uplink } = section ?? {};
  const [network] = networks;
  return {
    prepareNode: () => {
      if (uplink !== undefined && network !== undefined) restoreNodeAddresses(dataDir, uplink, network.bridge, logger);
      if (section?.encryption !== "ipsec" || section.ipsec.certificates === undefined) forgetAuthorities(logger);
    },
    createDataPath: (needs) => createOvsDataPath(ovsOptionsFromConfig(needs, logger, credentials?.(needs))),
    dataPathName: "ovs",
    livenessProbes: [namespaceProbe(addressesInNamespaces)],
  };
}

/** What an agent with certificates had strongSwan trust is trusted no more. */
function forgetAuthorities(logger: Logger): void {
  try {
    trustAuthorities(usualTrustDirectory, "");
  } catch (caught) {
    logger.warn("strongSwan still trusts authorities that nobody needs", { error: reasonOf(caught) });
  }
}

/** Where IPsec encrypts; a secret is taken at once, and certificates once the node has joined. @throws {CniError} 7, 5 */
async function ipsecCredentials(
  { ovs: section, nodes, socket, dataDir }: AgentConfig,
  logger: Logger,
): Promise<((needs: DataPathNeeds) => IpsecCredentials) | undefined> {
  if (section?.encryption !== "ipsec") return undefined;
  const { pskFile, certificates } = section.ipsec;
  if (certificates === undefined) {
    const secret = takePsk({ file: pskFile, socket }, process.env);
    return () => ({ kind: "psk", secret });
  }
  // No program that the agent starts is to have a secret that nobody needs.
  for (const name of Object.values(pskVariables)) delete process.env[name];
  // Loaded where it is needed: it holds the client of an API server.
  const { openCertificates } = await import("./certificates/mod.ts");
  return ({ cluster, keep }) => {
    const node = cluster?.self.name ?? nameOf(nodes ?? {});
    const source = openCertificates(certificates, { node, dataDir, logger, env: process.env });
    keep(source);
    return { kind: "certificate", source };
  };
}

async function hns(config: AgentConfig, logger: Logger, meter: AgentMeter | undefined): Promise<DataPathChoice> {
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
        hcn: openHcn({
          deadlineMs: config.hnsTimeoutMs,
          onLost: ({ message }) => lost.resolve(message),
          onFailure: ({ call, code }) => meter?.add("pipette_hns_failures_total", { call, code }),
        }),
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
