import { existsSync } from "node:fs";
import { reasonOf } from "../../../shared/reason.ts";
import type { AgentConfig } from "../../config/agent-config.ts";
import { EndpointRecords, endpointRecords, removeOverlay, removeServices } from "../../datapath/hns/mod.ts";
import { cleanUpHost, type HostRunner, hostRecords, openHostRunner } from "../../datapath/hns/windows-host/mod.ts";
import type { HostChange } from "../../datapath/host-change.ts";
import { type Hcn, type HcnEndpoint, openHcn } from "../../protocols/hcn/mod.ts";

/** The parts that a Windows node's network is cleaned up with. */
export interface WindowsNode {
  readonly dataDir: string;
  readonly hcn: Hcn;
  readonly run: HostRunner;
  /** Removes Open vSwitch's part of the HNS network, once its extension is off; absent: HNS alone forwards. */
  removeOverlay?(): Promise<readonly HostChange[]>;
}

/** Takes back what the data path of HNS has made, and Open vSwitch's part where that forwards. */
export async function takeBack({ dataDir, ovs, networks: [network] }: AgentConfig): Promise<readonly HostChange[]> {
  await using hcn = openHcn();
  const overlay =
    ovs === undefined || network === undefined
      ? {}
      : { removeOverlay: () => removeOverlay(ovs.database, network.bridge) };
  return await takeBackWindowsNode({ dataDir, hcn, run: openHostRunner(), ...overlay });
}

/** With the HNS networks that are ours, and the endpoints in them. */
export async function takeBackWindowsNode(node: WindowsNode): Promise<readonly HostChange[]> {
  const { dataDir, hcn, run } = node;
  // Where nothing is on record an HNS that is away does not matter.
  const isOnRecord = existsSync(hostRecords(dataDir)) || existsSync(endpointRecords(dataDir));
  const services = isOnRecord ? await removeLoadBalancers(hcn) : [];
  const areLeft = services.some(({ did }) => did === "failed");
  const endpoints = areLeft ? [] : await removeEndpoints(hcn, dataDir);
  let overlay: readonly HostChange[] | undefined = existsSync(hostRecords(dataDir)) ? undefined : [];
  const removeOverlayOnce = async (): Promise<readonly HostChange[]> => {
    overlay ??= (await node.removeOverlay?.()) ?? [];
    return overlay;
  };
  const host = await cleanUpHost(dataDir, run, async (network) => {
    const bridge = await removeOverlayOnce();
    // The rest stays on record for the next run.
    if (bridge.some(({ did }) => did === "failed")) return bridge;
    if (areLeft) {
      const problem = "the load balancers of services may lead to its endpoints still";
      return [...bridge, { step: "hns network", what: `HNS network "${network}"`, did: "failed", problem }];
    }
    return [...bridge, ...(await removeNetwork(hcn, network))];
  });
  const isTold = overlay !== undefined;
  return [...services, ...endpoints, ...host.changes, ...(isTold ? [] : await removeOverlayOnce())];
}

/** Removes what services have made, before the endpoints that it leads to. */
async function removeLoadBalancers(hcn: Hcn): Promise<readonly HostChange[]> {
  try {
    const { balancers, endpoints } = await removeServices(hcn, await hcn.endpoints());
    const undone = (step: string) => (id: string) => ({ step, what: id, did: "undone" }) as const;
    return [...balancers.map(undone("hns load balancer")), ...endpoints.map(undone("hns endpoint of services"))];
  } catch (caught) {
    return [{ step: "hns load balancer", what: "of services", did: "failed", problem: reasonOf(caught) }];
  }
}

/** Removes the recorded endpoints, in whatever network they are. */
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

/** Removes the network of this name and all its endpoints, since none can outlive the network. */
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
    throw new Error(`Cannot delete the ${what}: HNS lists it still`);
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
