import { CniCode, CniError } from "../../shared/errors.ts";
import { formatCidr } from "../../shared/net/ip.ts";
import type { AgentConfig, NetworkConfig } from "./agent-config.ts";

/** @throws {CniError} code 7 naming the networks that there are */
export function requireNetwork(config: AgentConfig, name: string): NetworkConfig {
  const network = config.networks.find((candidate) => candidate.name === name);
  if (network !== undefined) return network;
  const names = config.networks.map((candidate) => `"${candidate.name}"`).join(", ");
  throw new CniError(
    CniCode.invalidConfig,
    `Cannot serve network "${name}": the agent has ${names}, wanted one of these`,
  );
}

/** The `ipam` section that stands for a network of the agent's configuration. */
export function ipamSection(config: AgentConfig, network: NetworkConfig): Record<string, unknown> {
  return {
    type: "pipette-ipam",
    dataDir: config.dataDir,
    ranges: network.subnets.map((subnet) => [{ subnet: formatCidr(subnet) }]),
    routes: network.subnets.map((subnet) => ({ dst: subnet.ip.family === 4 ? "0.0.0.0/0" : "::/0" })),
    cooldownMs: config.cooldownMs,
    ...(network.exclude.length === 0 ? {} : { exclude: network.exclude }),
    ...(network.sticky ? { sticky: true } : {}),
  };
}
