import { join } from "node:path";
import { createLogger } from "../../../shared/log.ts";
import { InstanceLock } from "../../../shared/server/instance-lock.ts";
import type { System } from "../../../shared/server/system.ts";
import type { TerminalIo } from "../../../shared/terminal/terminal-io.ts";
import type { AgentConfig } from "../../config/agent-config.ts";
import { leasesAfter, reportChanges } from "./clean-up-node.ts";

/**
 * `pipette agent --cleanup` on Linux: takes back what agents have changed on this node, and lets the addresses of the
 * pods cool whose network that was.
 * @returns exit status: failed where anything stays, which a second run tries again
 * @throws {CniError} code 5 while an agent runs, before anything is touched
 */
export async function cleanUpLinuxNode(
  { dataDir, dataPath, ovs, networks }: AgentConfig,
  system: System,
  json: boolean,
  io: TerminalIo,
): Promise<number> {
  using _lock = InstanceLock.take(join(dataDir, "agent.lock"), "the clean-up", `data directory "${dataDir}"`, system);
  const logger = createLogger("warn", (line) => io.stderr(`${line}\n`));
  const [network] = networks;
  if (dataPath !== "ovs" || ovs === undefined || network === undefined) {
    const { cleanUpBridges } = await import("../../datapath/bridge/mod.ts");
    const changes = await cleanUpBridges(networks, logger);
    const names = networks.map(({ name }) => name);
    return reportChanges([...changes, ...(await leasesAfter(changes, dataDir, names))], json, io);
  }
  const { cleanUpOvs } = await import("../../datapath/ovs/linux/clean-up.ts");
  const { database, gateway, uplink } = ovs;
  const { name, bridge } = network;
  const changes = await cleanUpOvs({ network: name, dataDir, uplink, database, bridge, gateway, logger });
  return reportChanges([...changes, ...(await leasesAfter(changes, dataDir, [name]))], json, io);
}
