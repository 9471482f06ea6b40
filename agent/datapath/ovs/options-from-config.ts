import { hostname, networkInterfaces } from "node:os";
import { LiveValue } from "../../../shared/async/live-value.ts";
import { CniCode, CniError } from "../../../shared/errors.ts";
import type { Logger } from "../../../shared/log.ts";
import { bitsOf, type Cidr, type Ip, parseCidr, sameIp } from "../../../shared/net/ip.ts";
import { clusterNetworks } from "../../cluster/cluster-networks.ts";
import type { DataPathNeeds } from "../datapath.ts";
import type { OvsDataPathOptions } from "./options.ts";
import { openServiceFile } from "./services/service-file.ts";

/** What the data path is made with, as the configuration and the cluster have it. */
export function ovsOptionsFromConfig({ config, cluster, podOf }: DataPathNeeds, logger: Logger): OvsDataPathOptions {
  const { ovs, networks } = config;
  const [network] = networks;
  if (ovs === undefined || network === undefined)
    throw new CniError(CniCode.invalidConfig, 'Cannot make the data path: "ovs" is missing, wanted that section');
  const { services, multitenant, nodeAddresses, datapath: kind, clusterSubnets, ...others } = ovs;
  if (multitenant && cluster?.tenants === undefined)
    throw new CniError(
      CniCode.invalidConfig,
      'Cannot keep projects apart: "ovs.tenants" is "multitenant" and the registry keeps no VNIDs, wanted "nodes" with one that does',
    );
  return {
    ...others,
    kind,
    network: network.name,
    dataDir: config.dataDir,
    bridge: network.bridge,
    podSubnets: network.subnets,
    ...(network.mtu === undefined ? {} : { mtu: network.mtu }),
    masquerade: network.masquerade,
    nodeName: cluster?.self.name ?? hostname(),
    nodeAddresses:
      nodeAddresses.length > 0 || cluster === undefined ? nodeAddresses.map(onLink) : cluster.linkAddresses,
    clusterSubnets: clusterSubnets ?? clusterNetworks(config),
    peers: cluster?.peers ?? new LiveValue(new Map()),
    services: services.file === undefined ? undefined : openServiceFile(services.file, logger),
    serviceCidrs: services.cidrs,
    tenants: multitenant ? cluster?.tenants : undefined,
    podOf,
    logger,
  };
}

/** With the length of its network's prefix, as an interface of this node has it; else alone. */
function onLink(ip: Ip): Cidr {
  const all = Object.values(networkInterfaces()).flatMap((entries = []) => entries.map(({ cidr }) => cidr ?? ""));
  return (
    all.map(parseCidr).find((cidr) => cidr !== undefined && sameIp(cidr.ip, ip)) ?? { ip, prefix: bitsOf(ip.family) }
  );
}
