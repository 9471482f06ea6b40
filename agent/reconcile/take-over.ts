import { parseIpamConfig, takeOver } from "../../ipam/mod.ts";
import { latestVersion } from "../../shared/cni/versions.ts";
import { CniError } from "../../shared/errors.ts";
import { Fields } from "../../shared/schema/json-fields.ts";
import { ipamSection } from "../config/network-sections.ts";
import type { AgentParts } from "./agent-parts.ts";

/**
 * Takes what host-local leased in the agent's networks over before anything is decided by the leases. What keeps it from
 * that must not keep the agent from its start: each ADD tries again, and fails with the reason.
 */
export async function takeNetworksOver({ allocator, config, logger }: AgentParts): Promise<void> {
  for (const network of config.networks) {
    const { name } = network;
    try {
      const conf = new Fields({ ipam: ipamSection(config, network) });
      const ipam = parseIpamConfig({ conf, network: name, version: latestVersion, args: "" });
      await takeOver(allocator, name, (line) => logger.info(line), ipam);
    } catch (caught) {
      const { message, details } = CniError.from(caught, "take over from host-local");
      logger.error(message, { network: name, details });
    }
  }
}
