import { CniCode, CniError } from "../../shared/errors.ts";
import { contains, formatCidr, formatIp, overlap } from "../../shared/net/ip.ts";
import { touchesNobodys } from "../../shared/net/node-address.ts";
import type { AgentConfig } from "../config/agent-config.ts";
import { isPodSubnet } from "../config/values.ts";
import type { ClusterNode } from "./node-registry.ts";

/** The configuration as if it said nothing of the first network's subnets: what pods have is not its to say. */
export function withoutSubnets(config: AgentConfig): AgentConfig {
  const [first, ...others] = config.networks;
  return first === undefined ? config : { ...config, networks: [{ ...first, subnets: [] }, ...others] };
}

/**
 * The configuration with the node's subnets on its first network.
 * @throws {CniError} code 7 where the two do not go together
 */
export function withSubnets(config: AgentConfig, self: ClusterNode): AgentConfig {
  const [first, ...others] = config.networks;
  if (first === undefined) return config;
  const text = self.subnets.map(formatCidr).join(", ");
  const refuse = (is: string, wanted: string): never => {
    throw new CniError(
      CniCode.invalidConfig,
      `Cannot join: the registry gives this node ${text === "" ? "no subnet" : `"${text}"`}, ${is}, wanted ${wanted}`,
    );
  };
  const families = new Set(self.subnets.map(({ ip }) => ip.family));
  const areForPods = self.subnets.every((subnet) => isPodSubnet(subnet) && !touchesNobodys(subnet));
  if (self.subnets.length === 0 || families.size < self.subnets.length || !areForPods)
    refuse("which are no subnets for pods", "one block, or one of each family, without host bits");
  const said = first.subnets.map(formatCidr).join(", ");
  if (said !== "" && said !== text) refuse(`and the configuration says "${said}"`, "the same, or none there");
  const within = self.addresses.find((ip) => self.subnets.some((subnet) => contains(subnet, ip)));
  if (within !== undefined) refuse(`with the node's own address "${formatIp(within)}" in it`, "another");
  const other = others.find(({ subnets }) => subnets.some((a) => self.subnets.some((b) => overlap(a, b))));
  if (other !== undefined) refuse(`a part of network "${other.name}" or around it`, "one that is free");
  if (config.dataPath === "hns" && (families.has(6) || self.subnets.length !== 1))
    refuse('and "dataPath" is "hns"', "one of IPv4");
  if (families.has(6) && (first.mtu ?? 1500) < 1280) refuse(`and an MTU of ${first.mtu}`, "at least 1280 for IPv6");
  return { ...config, networks: [{ ...first, subnets: self.subnets }, ...others] };
}
