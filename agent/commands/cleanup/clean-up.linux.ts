import type { Logger } from "../../../shared/log.ts";
import type { AgentConfig } from "../../config/agent-config.ts";
import type { HostChange } from "../../datapath/host-change.ts";

/** Takes back what the data path has made that the configuration names; only its code is loaded. */
export async function takeBack(
  { dataDir, dataPath, ovs, networks }: AgentConfig,
  logger: Logger,
): Promise<readonly HostChange[]> {
  const [network] = networks;
  if (dataPath !== "ovs" || ovs === undefined || network === undefined) {
    const { cleanUpBridges } = await import("../../datapath/bridge/mod.ts");
    return await cleanUpBridges(networks, logger);
  }
  const { cleanUpOvs } = await import("../../datapath/ovs/linux/clean-up.ts");
  const { database, gateway, uplink, wireguard } = ovs;
  const { name, bridge } = network;
  return await cleanUpOvs({
    network: name,
    dataDir,
    uplink,
    database,
    bridge,
    gateway,
    encrypting: wireguard.device,
    logger,
  });
}
