import { existsSync } from "node:fs";
import { join } from "node:path";
import { reasonOf } from "../../../shared/reason.ts";
import { InstanceLock } from "../../../shared/server/instance-lock.ts";
import type { System } from "../../../shared/server/system.ts";
import { exitStatus } from "../../../shared/terminal/exit-status.ts";
import { formatJson } from "../../../shared/terminal/printable.ts";
import { formatTable } from "../../../shared/terminal/table.ts";
import type { TerminalIo } from "../../../shared/terminal/terminal-io.ts";
import { EndpointRecords, endpointRecords } from "../../datapath/hns/mod.ts";
import { cleanUpHost, type HostRunner, hostRecords } from "../../datapath/hns/windows-host/mod.ts";
import type { HostChange } from "../../datapath/host-change.ts";
import type { Hcn, HcnEndpoint } from "../../protocols/hcn/mod.ts";
import { endLeases } from "./end-leases.ts";

export interface CleanUpParts {
  readonly dataDir: string;
  /** Names of those that the agent serves. */
  readonly networks: readonly string[];
  readonly system: System;
  readonly hcn: Hcn;
  readonly run: HostRunner;
  /** Takes away what forwards on the HNS network, once the switch no longer asks it; absent: HNS alone does. */
  removeOverlay?(): Promise<readonly HostChange[]>;
}

/**
 * `pipette agent --cleanup`: takes back what agents have changed on this node, with the HNS networks that are ours and
 * the endpoints in them, and lets the addresses of the pods cool whose network that was.
 * @returns exit status: failed where anything stays, which a second run tries again
 * @throws {CniError} code 5 while an agent runs, before anything is touched
 */
export async function cleanUpNode(parts: CleanUpParts, json: boolean, io: TerminalIo): Promise<number> {
  const { dataDir, system, hcn, run } = parts;
  using _lock = InstanceLock.take(join(dataDir, "agent.lock"), "the clean-up", `data directory "${dataDir}"`, system);
  const endpoints = await removeEndpoints(hcn, dataDir);
  let overlay: readonly HostChange[] | undefined = existsSync(hostRecords(dataDir)) ? undefined : [];
  const removeOverlay = async (): Promise<readonly HostChange[]> => {
    overlay ??= (await parts.removeOverlay?.()) ?? [];
    return overlay;
  };
  const host = await cleanUpHost(dataDir, run, async (network) => {
    const bridge = await removeOverlay();
    // The next run finds on record that there is more to do.
    if (bridge.some(({ did }) => did === "failed")) return bridge;
    return [...bridge, ...(await removeNetwork(hcn, network))];
  });
  const isTold = overlay !== undefined;
  const changes = [...endpoints, ...host.changes, ...(isTold ? [] : await removeOverlay())];
  return reportChanges([...changes, ...(await leasesAfter(changes, dataDir, parts.networks))], json, io);
}

/** Where an interface may stand still, its address is in use. */
export async function leasesAfter(
  changes: readonly HostChange[],
  dataDir: string,
  networks: readonly string[],
): Promise<readonly HostChange[]> {
  return changes.some(({ did }) => did === "failed") ? [] : await endLeases(dataDir, networks);
}

/** @returns exit status: failed where anything stays */
export function reportChanges(changes: readonly HostChange[], json: boolean, io: TerminalIo): number {
  const failed = changes.filter(({ did }) => did === "failed");
  if (json) io.stdout(formatJson({ changes }));
  else if (changes.length === 0) io.stdout("nothing on record: there is nothing to clean up\n");
  else io.stdout(formatTable([["STEP", "WHAT", "DID"], ...changes.map(({ step, what, did }) => [step, what, did])]));
  for (const { problem = "" } of failed) io.stderr(`${problem}\n`);
  return failed.length === 0 ? exitStatus.done : exitStatus.failed;
}

/** Those on record, in whatever network they are. */
async function removeEndpoints(hcn: Hcn, dataDir: string): Promise<readonly HostChange[]> {
  const directory = endpointRecords(dataDir);
  const records = existsSync(directory) ? EndpointRecords.open(directory) : undefined;
  if (records === undefined || records.all().length === 0) return [];
  const changes: HostChange[] = [];
  try {
    for (const endpoint of await hcn.endpoints()) {
      if (records.get(endpoint.id) === undefined) continue;
      changes.push(await removeEndpoint(hcn, endpoint));
      records.remove(endpoint.id);
    }
  } catch (caught) {
    changes.push({ step: "hns endpoint", what: "endpoints on record", did: "failed", problem: reasonOf(caught) });
  }
  return changes;
}

/** The network of this name, and what else is in it: whoever made that, it cannot outlive the network. */
async function removeNetwork(hcn: Hcn, name: string): Promise<readonly HostChange[]> {
  const what = `HNS network "${name}"`;
  const changes: HostChange[] = [];
  const isNamed = (network: { readonly name: string }): boolean => network.name.toLowerCase() === name.toLowerCase();
  try {
    const network = (await hcn.networks()).find(isNamed);
    if (network === undefined) return [{ step: "hns network", what, did: "was gone" }];
    for (const endpoint of await hcn.endpoints())
      if (endpoint.networkId === network.id) changes.push(await removeEndpoint(hcn, endpoint));
    await hcn.deleteNetwork(network.id);
    if (!(await hcn.networks()).some(isNamed)) return [...changes, { step: "hns network", what, did: "undone" }];
    throw new Error(`Cannot delete the ${what}: HNS lists it still, wanted it gone`);
  } catch (caught) {
    return [...changes, { step: "hns network", what, did: "failed", problem: reasonOf(caught) }];
  }
}

async function removeEndpoint(hcn: Hcn, endpoint: HcnEndpoint): Promise<HostChange> {
  if (endpoint.namespaceId !== "") await hcn.detach(endpoint.namespaceId, endpoint.id);
  await hcn.deleteEndpoint(endpoint.id);
  const addresses = endpoint.addresses.map(({ address }) => address).join(", ");
  return { step: "hns endpoint", what: `"${endpoint.name}" ${addresses}`, did: "undone" };
}
