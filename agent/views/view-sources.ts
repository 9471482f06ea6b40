import type { Lease } from "../../ipam/mod.ts";
import { ownerKey } from "../../shared/cni/owner-key.ts";
import type { Owner, Pod } from "../../shared/cni/types.ts";
import type { FindingsDocument } from "../../shared/documents/mod.ts";
import { formatCidr, formatIp } from "../../shared/net/ip.ts";
import type { NodeRegistry } from "../cluster/node-registry.ts";
import type { NodePolicies } from "../policies/mod.ts";
import type { PeerProbes } from "../reachability/mod.ts";
import type { AgentContext, Janitor } from "../reconcile/mod.ts";
import type { NodeInfo } from "../server/node-service.ts";
import type { NodeServices } from "../services/mod.ts";

/** What of an agent its documents are made of; parts that are not there (yet) are absent. */
export interface ViewSources {
  readonly context: AgentContext;
  readonly janitor: Pick<Janitor, "pendingDetaches">;
  readonly info: NodeInfo;
  /** The node's name. */
  readonly node: string;
  readonly registry: NodeRegistry | undefined;
  /** What is known of the ways to other nodes' pods; absent: nobody probes. */
  probes(): Pick<PeerProbes, "of" | "about"> | undefined;
  policies(): Pick<NodePolicies, "isolated" | "summary" | "differences"> | undefined;
  services(): Pick<NodeServices, "wanted" | "refusalOf"> | undefined;
  logLevel(): string;
  /** What disagrees on the node; absent: nothing here can look. */
  examine?(): Promise<Examined>;
}

/** What the doctor says. */
export type Examined = Pick<FindingsDocument, "findings" | "leases" | "interfaces">;

/** What a name asks for: `namespace/pod`, or `namespace/` for all pods of a namespace. */
export function namedPod(name: string): (pod: Pick<Pod, "namespace" | "name"> | undefined) => boolean {
  if (name === "") return () => true;
  if (name.endsWith("/")) return (pod) => pod !== undefined && `${pod.namespace}/` === name;
  return (pod) => pod !== undefined && `${pod.namespace}/${pod.name}` === name;
}

/** Keys of a pod in a document, where the runtime has named it. */
export const podKeys = (pod: Pod | undefined): { podNamespace?: string; podName?: string; podUid?: string } =>
  pod === undefined
    ? {}
    : { podNamespace: pod.namespace, podName: pod.name, ...(pod.uid === "" ? {} : { podUid: pod.uid }) };

/** Leases by the key of their owner. */
export const leasesByOwner = (leases: readonly Lease[]): ReadonlyMap<string, readonly Lease[]> =>
  Map.groupBy(leases, ({ owner }) => ownerKey(owner));

export const attachmentOf = ({ network, sandboxId, ifname }: Owner) => ({ network, containerId: sandboxId, ifname });

/** The addresses of leases, and the first gateway. */
export function addressKeys(leases: readonly Lease[]): { addresses: string[]; gateway?: string } {
  const gateway = leases.find((lease) => lease.gateway !== undefined)?.gateway;
  return {
    addresses: leases.map(({ address }) => formatCidr(address)),
    ...(gateway === undefined ? {} : { gateway: formatIp(gateway) }),
  };
}

/** As many rows as a document has room for, and how many more there are. */
export function cut<T>(rows: readonly T[], most: number): { readonly kept: readonly T[]; readonly omitted: number } {
  const kept = rows.length > most ? rows.slice(0, most) : rows;
  return { kept, omitted: rows.length - kept.length };
}
