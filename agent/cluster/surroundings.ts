import {
  bitsOf,
  type Cidr,
  contains,
  type Family,
  formatCidr,
  hostBlock,
  type Ip,
  overlap,
} from "../../shared/net/ip.ts";
import type { AgentConfig } from "../config/agent-config.ts";
import { defaultServiceCidr } from "../config/ovs-shape.ts";
import type { AdmissionPolicy, ClusterBlock, ReservedBlock } from "./admissible.ts";
import type { ClusterNode } from "./node-registry.ts";

/**
 * What this node's configuration says of the cluster, for the judgement of other nodes' records.
 * @param links addresses of this node with the length of their network's prefix
 * @param servers addresses of the machines that keep the registry, as far as they are known
 */
export function admissionPolicyOf(
  config: AgentConfig,
  self: ClusterNode,
  links: readonly Cidr[],
  servers: readonly Ip[],
): AdmissionPolicy {
  const networks = { ...networksOf(config, self, 4), ...networksOf(config, self, 6) };
  const blocks = Object.values(networks).flat();
  const { file, cidrs = [] } = config.ovs?.services ?? {};
  // Without services of ours the default block may be nobody's, and the pods' network around it.
  const isSaid = (cidr: Cidr): boolean => file !== undefined || formatCidr(cidr) !== defaultServiceCidr;
  const service = cidrs.filter((cidr) => isSaid(cidr) || !blocks.some((block) => overlap(block.cidr, cidr)));
  const [, ...others] = config.networks;
  const occupied: readonly ReservedBlock[] = [
    ...service.map((cidr) => ({ cidr, what: "where services have their addresses" })),
    ...others.flatMap(({ name, subnets }) =>
      subnets.map((cidr) => ({ cidr, what: `the subnet of this node's network "${name}"` })),
    ),
    ...servers.map((ip) => ({ cidr: hostBlock(ip), what: "where the registry is kept" })),
    // Whoever has the cluster's networks within the link's has said so; its single addresses are nodes' all the same.
    ...links
      .filter((cidr) => !blocks.some((block) => overlap(block.cidr, cidr)))
      .map((cidr) => ({ cidr, what: "the network that this node's own interface is in" })),
  ];
  // What this node's own pods are in nobody has forbidden to others' pods.
  return { networks, occupied: occupied.filter(({ cidr }) => !self.subnets.some((own) => overlap(own, cidr))), links };
}

/** As the registry leases them; else what the configuration says of the whole cluster, where this node's pods are in it. */
function networksOf({ nodes, ovs }: AgentConfig, self: ClusterNode, family: Family): AdmissionPolicy["networks"] {
  const ofFamily = ({ cidr }: ClusterBlock): boolean => cidr.ip.family === family;
  const registry = nodes?.registry;
  if (registry !== undefined && "networks" in registry) {
    const blocks = registry.networks.map(({ cidr, hostBits }) => ({ cidr, nodePrefix: bitsOf(family) - hostBits }));
    return { [family]: blocks.filter(ofFamily) };
  }
  const said = (ovs?.clusterSubnets ?? []).map((cidr) => ({ cidr })).filter(ofFamily);
  const own = self.subnets.filter(({ ip }) => ip.family === family);
  const isWithin = own.length > 0 && own.every(({ ip }) => said.some(({ cidr }) => contains(cidr, ip)));
  return isWithin ? { [family]: said } : {};
}
