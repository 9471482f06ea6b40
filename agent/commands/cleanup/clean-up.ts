import { join } from "node:path";
import { Allocator } from "../../../ipam/mod.ts";
import { CniError } from "../../../shared/errors.ts";
import { createLogger, type Logger } from "../../../shared/log.ts";
import { isWindows } from "../../../shared/os/platform.ts";
import { InstanceLock } from "../../../shared/server/instance-lock.ts";
import { openSystem } from "../../../shared/server/open-system.ts";
import { exitStatus } from "../../../shared/terminal/exit-status.ts";
import { counted, formatJson } from "../../../shared/terminal/printable.ts";
import { formatTable } from "../../../shared/terminal/table.ts";
import type { TerminalIo } from "../../../shared/terminal/terminal-io.ts";
import type { AgentConfig } from "../../config/agent-config.ts";
import type { HostChange } from "../../datapath/host-change.ts";

/** The data directory of a configuration, and its networks. */
interface Served {
  readonly dataDir: string;
  readonly networks: readonly { readonly name: string }[];
}

/**
 * `pipette agent --cleanup`: takes back what agents have changed on this node, and lets the addresses of the pods cool
 * whose network that was.
 * @returns exit status: failed where anything stays, which a second run tries again
 * @throws {CniError} code 5 while an agent runs, before anything is touched
 */
export async function cleanUp(config: AgentConfig, json: boolean, io: TerminalIo): Promise<number> {
  const { takeBack } = isWindows ? await import("./clean-up.windows.ts") : await import("./clean-up.linux.ts");
  return await cleanUpBy((logger) => takeBack(config, logger), config, json, io);
}

/**
 * The same with another implementation of the data path's part, for tests.
 * @param takeBack answers what it did; what failed is left for a second run
 */
export async function cleanUpBy(
  takeBack: (logger: Logger) => Promise<readonly HostChange[]>,
  { dataDir, networks }: Served,
  json: boolean,
  io: TerminalIo,
): Promise<number> {
  const what = `data directory "${dataDir}"`;
  using _lock = InstanceLock.take(join(dataDir, "agent.lock"), "the clean-up", what, await openSystem());
  const logger = createLogger("warn", (line) => io.stderr(`${line}\n`));
  const changes = await takeBack(logger);
  // If an interface may still exist, its address is in use.
  const mayStand = changes.some(({ did }) => did === "failed");
  const names = networks.map(({ name }) => name);
  return report([...changes, ...(mayStand ? [] : await endLeases(dataDir, names))], json, io);
}

/**
 * Lets the addresses of pods whose interfaces a clean-up has removed cool, because no agent will do it: the next one
 * may have another subnet. Leases that a program or a person took without an interface stay. The caller holds the
 * agent's lock.
 * @param networks names
 */
async function endLeases(dataDir: string, networks: readonly string[]): Promise<readonly HostChange[]> {
  const step = "leases";
  try {
    using allocator = await Allocator.openExisting(dataDir);
    if (allocator === undefined) return [];
    let ended = 0;
    for (const network of networks)
      for (const page of allocator.pages(network))
        for (const lease of page) {
          if (lease.state === "releasing") ended += Number(allocator.finishRelease(lease));
          // All leases of the owner, since they belonged to one interface.
          else if (lease.state === "allocated" && allocator.hasInterface(lease))
            ended += allocator.release(lease.owner, "cooling").length;
        }
    for (const owner of allocator.pendingDetaches())
      if (networks.includes(owner.network)) allocator.forgetPendingDetach(owner);
    return ended === 0 ? [] : [{ step, what: `${counted(ended, "lease")} of pods`, did: "undone" }];
  } catch (caught) {
    return [{ step, what: "leases of pods", did: "failed", problem: CniError.from(caught).message }];
  }
}

/** @returns exit status: failed where anything stays */
function report(changes: readonly HostChange[], json: boolean, io: TerminalIo): number {
  const failed = changes.filter(({ did }) => did === "failed");
  if (json) io.stdout(formatJson({ changes }));
  else if (changes.length === 0) io.stdout("nothing on record: there is nothing to clean up\n");
  else io.stdout(formatTable([["STEP", "WHAT", "DID"], ...changes.map(({ step, what, did }) => [step, what, did])]));
  for (const { problem = "" } of failed) io.stderr(`${problem}\n`);
  return failed.length === 0 ? exitStatus.done : exitStatus.failed;
}
