import { parseIpamConfig } from "../../ipam/mod.ts";
import { latestVersion } from "../../shared/cni/versions.ts";
import { CniError } from "../../shared/errors.ts";
import { Fields } from "../../shared/json-fields.ts";
import { ipamSection } from "../config/network-sections.ts";
import type { AgentContext } from "./agent-context.ts";

/**
 * Takes what host-local leased in the agent's networks over before anything is decided by the leases. What keeps it from
 * that must not keep the agent from its start: each ADD tries again, and fails with the reason.
 */
export async function takeNetworksOver({ allocator, config, logger }: AgentContext): Promise<void> {
  for (const network of config.networks) {
    const { name } = network;
    try {
      const conf = new Fields({ ipam: ipamSection(config, network) });
      const ipam = parseIpamConfig({ conf, network: name, version: latestVersion, args: "" });
      await allocator.takeOver(name, (line) => logger.info(line), ipam);
    } catch (caught) {
      const { message, details } = CniError.from(caught, "take over from host-local");
      logger.error(message, { network: name, details });
    }
  }
}
