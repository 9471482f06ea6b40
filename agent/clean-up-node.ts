import { join } from "node:path";
import { InstanceLock } from "../shared/server/instance-lock.ts";
import type { System } from "../shared/server/system.ts";
import { exitStatus } from "../shared/terminal/exit-status.ts";
import { formatJson } from "../shared/terminal/printable.ts";
import { formatTable } from "../shared/terminal/table.ts";
import type { TerminalIo } from "../shared/terminal/terminal-io.ts";
import type { Hcn } from "./hcn/mod.ts";
import { cleanUpHost, type HostChange, type HostRunner } from "./windows-host/mod.ts";

export interface CleanUpParts {
  readonly dataDir: string;
  readonly system: System;
  readonly hcn: Hcn;
  readonly run: HostRunner;
}

/**
 * `pipette agent --cleanup`: takes back what agents have changed on this node, with the HNS networks that are ours and
 * the endpoints in them. Leases stay; the next agent sees that nothing stands behind them.
 * @returns exit status: failed where anything stays, which a second run tries again
 * @throws {CniError} code 5 while an agent runs, before anything is touched
 */
export async function cleanUpNode(parts: CleanUpParts, json: boolean, io: TerminalIo): Promise<number> {
  const { dataDir, system, hcn, run } = parts;
  using _lock = InstanceLock.take(join(dataDir, "agent.lock"), "the clean-up", `data directory "${dataDir}"`, system);
  const { changes } = await cleanUpHost(dataDir, run, (network) => removeNetwork(hcn, network));
  const failed = changes.filter(({ did }) => did === "failed");
  if (json) io.stdout(formatJson({ changes }));
  else if (changes.length === 0) io.stdout("nothing on record: there is nothing to clean up\n");
  else io.stdout(formatTable([["STEP", "WHAT", "DID"], ...changes.map(({ step, what, did }) => [step, what, did])]));
  for (const { problem = "" } of failed) io.stderr(`${problem}\n`);
  return failed.length === 0 ? exitStatus.done : exitStatus.failed;
}

/** The network of this name, and the endpoints in it: whoever made them, they cannot outlive it. */
async function removeNetwork(hcn: Hcn, name: string): Promise<readonly HostChange[]> {
  const what = `HNS network "${name}"`;
  const changes: HostChange[] = [];
  const isNamed = (network: { readonly name: string }): boolean => network.name.toLowerCase() === name.toLowerCase();
  try {
    const network = (await hcn.networks()).find(isNamed);
    if (network === undefined) return [{ step: "hns network", what, did: "was gone" }];
    for (const endpoint of (await hcn.endpoints()).filter(({ networkId }) => networkId === network.id)) {
      if (endpoint.namespaceId !== "") await hcn.detach(endpoint.namespaceId, endpoint.id);
      await hcn.deleteEndpoint(endpoint.id);
      const addresses = endpoint.addresses.map(({ address }) => address).join(", ");
      changes.push({ step: "hns endpoint", what: `"${endpoint.name}" ${addresses}`, did: "undone" });
    }
    await hcn.deleteNetwork(network.id);
    if ((await hcn.networks()).some(isNamed))
      throw new Error(`Cannot delete the ${what}: HNS lists it still, wanted it gone`);
    return [...changes, { step: "hns network", what, did: "undone" }];
  } catch (caught) {
    const problem = caught instanceof Error ? caught.message : String(caught);
    return [...changes, { step: "hns network", what, did: "failed", problem }];
  }
}
