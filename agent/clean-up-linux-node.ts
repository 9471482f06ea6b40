import { join } from "node:path";
import { createLogger } from "../shared/log.ts";
import { InstanceLock } from "../shared/server/instance-lock.ts";
import type { System } from "../shared/server/system.ts";
import type { TerminalIo } from "../shared/terminal/terminal-io.ts";
import { reportChanges } from "./clean-up-node.ts";
import type { AgentConfig } from "./config/agent-config.ts";

/**
 * `pipette agent --cleanup` on Linux: takes back what agents have changed on this node. Leases stay; the next agent sees
 * that nothing stands behind them.
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
    const { cleanUpBridges } = await import("./datapath/bridge/mod.ts");
    return reportChanges(await cleanUpBridges(networks, logger), json, io);
  }
  const { cleanUpOvs } = await import("./datapath/ovs/mod.ts");
  const { database, gateway, uplink } = ovs;
  const { name, bridge } = network;
  return reportChanges(
    await cleanUpOvs({ network: name, dataDir, uplink, database, bridge, gateway, logger }),
    json,
    io,
  );
}
