import { type Lease, loadViews } from "../../ipam/mod.ts";
import { ownerKey } from "../../shared/cni/owner-key.ts";
import {
  type AddressesDocument,
  documentVersion,
  type LeasesDocument,
  maxRows,
  maxValues,
  type PodsDocument,
} from "../../shared/documents/mod.ts";
import { ipamConfigFor } from "../server/node-service.ts";
import { addressKeys, attachmentOf, cut, leasesByOwner, namedPod, podKeys, type ViewSources } from "./view-sources.ts";

/** @param name `namespace/pod`, `namespace/` or empty @throws {CniError} 11 before the agent has a data path */
export async function podsView({ context, node }: ViewSources, name: string): Promise<PodsDocument> {
  const isNamed = namedPod(name);
  const attached = await context.dataPath.list();
  const leases = leasesByOwner(context.allocator.list().filter(({ state }) => state === "allocated"));
  const pods = attached.flatMap(({ owner, hostIfname, ownLease, mac, port }) => {
    const own = leases.get(ownerKey(owner)) ?? [];
    const pod = own.find((lease) => lease.pod !== undefined)?.pod;
    if (!isNamed(pod)) return [];
    return {
      ...podKeys(pod),
      ...attachmentOf(owner),
      ...{ hostIfname, ownLease },
      ...addressKeys(own.slice(0, maxValues)),
      ...(mac === undefined ? {} : { mac }),
      ...(port === undefined ? {} : { port }),
    };
  });
  const { kept, omitted } = cut(pods.sort(byPod), maxRows);
  return { kind: "pods", version: documentVersion, node, pods: kept, omitted };
}

/** By namespace and name; those without a name last. */
function byPod(a: PodsDocument["pods"][number], b: PodsDocument["pods"][number]): number {
  const keyOf = (pod: typeof a): string =>
    pod.podName === undefined ? `\uffff${pod.containerId}` : `${pod.podNamespace}/${pod.podName} ${pod.ifname}`;
  return keyOf(a) < keyOf(b) ? -1 : 1;
}

/** @param name as in `podsView` */
export async function leasesView({ context, node }: ViewSources, name: string): Promise<LeasesDocument> {
  const isNamed = namedPod(name);
  const { leaseView } = await loadViews();
  const leases: Lease[] = [];
  let omitted = 0;
  for (const page of context.allocator.pages())
    for (const lease of page) {
      if (!isNamed(lease.pod)) continue;
      if (leases.length < maxRows) leases.push(lease);
      else omitted++;
    }
  return { kind: "leases", version: documentVersion, node, leases: leases.map(leaseView), omitted };
}

export async function addressesView({ context, node }: ViewSources): Promise<AddressesDocument> {
  const { poolViews } = await loadViews();
  const { allocator, config } = context;
  const leasesOf = function* (network: string): Generator<Lease, void> {
    for (const page of allocator.pages(network)) yield* page;
  };
  // A node that has not joined has no subnet yet.
  const networks = config.networks.filter(({ subnets }) => subnets.length > 0);
  const pools = networks.flatMap((network) =>
    poolViews(network.name, ipamConfigFor(context, network), () => leasesOf(network.name)),
  );
  const { kept, omitted } = cut(pools, maxValues);
  return { kind: "addresses", version: documentVersion, node, pools: kept, omitted };
}
