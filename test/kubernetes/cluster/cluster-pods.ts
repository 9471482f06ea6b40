import type { Place } from "../../overlay/lab/reach.ts";
import { NetworkNamespace } from "../../support/network-namespace.ts";
import type { Cluster } from "./cluster.ts";
import type { ControlPlane } from "./control-plane.ts";
import type { KubeletNode } from "./kubelet-node.ts";

interface PodList {
  readonly items: readonly {
    readonly metadata: { readonly name: string; readonly uid: string; readonly deletionTimestamp?: string };
    readonly spec: { readonly nodeName?: string };
    readonly status: {
      readonly podIPs?: readonly { readonly ip: string }[];
      readonly conditions?: readonly { readonly type: string; readonly status: string }[];
    };
  }[];
}

export interface ClusterPod {
  readonly name: string;
  readonly uid: string;
  readonly node: string;
  readonly addresses: readonly string[];
  readonly isReady: boolean;
}

/** What the API server says of the pods of `app` that are not about to go. */
export async function podsOf(cluster: Cluster, app: string): Promise<readonly ClusterPod[]> {
  const { items } = await cluster.plane.get<PodList>(`pods -l app=${app}`);
  return items
    .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    .map(({ metadata: { name, uid }, spec, status }) => ({
      name,
      uid,
      node: spec.nodeName ?? "",
      addresses: (status.podIPs ?? []).map(({ ip }) => ip),
      isReady: (status.conditions ?? []).some(({ type, status: is }) => type === "Ready" && is === "True"),
    }));
}

interface EventList {
  readonly items: readonly { readonly message: string; readonly involvedObject: { readonly name: string } }[];
}

/** Why pods of `app` did not get their network at the first try: what the kubelet's events say. */
export async function failedSandboxes(plane: ControlPlane, app: string): Promise<readonly string[]> {
  const { items } = await plane.get<EventList>("events --field-selector reason=FailedCreatePodSandBox");
  return items.filter(({ involvedObject }) => involvedObject.name.startsWith(`${app}-`)).map(({ message }) => message);
}

/** Where packets of a pod come from and go to. It goes under its own address to pods, gateways and its node. */
export async function placeOf(cluster: Cluster, pod: ClusterPod): Promise<Place> {
  const node = cluster.node(pod.node);
  const sandbox = (await node.sandboxes()).find(({ addresses }) => addresses.join() === pod.addresses.join());
  if (sandbox === undefined) throw new Error(`containerd of ${pod.node} knows no pod with ${pod.addresses}`);
  // The name is a mount of the node's; /var/run would lead out of it, to the machine's /run.
  const path = sandbox.netns.replace(/^\/var/, "");
  const namespace = NetworkNamespace.at(`/proc/${node.place.firstPid}/root${path}`);
  const isNear = (address: string): boolean => /^(10\.10\.|fd10:)/.test(address) || node.addresses.includes(address);
  return {
    name: `${pod.node}/${pod.name}`,
    namespace,
    addresses: pod.addresses,
    seenAs: (address) => (isNear(address) ? pod.addresses : node.addresses),
  };
}

/** A node reaches its pods under its gateway's address, the first of their block. */
export async function nodePlace(cluster: Cluster, node: KubeletNode): Promise<Place> {
  const { spec } = await cluster.plane.get<{ spec: { podCIDRs: string[] } }>(`node ${node.name}`);
  const gateways = spec.podCIDRs.map((cidr) =>
    cidr.replace(/\/.*/, "").replace(/(:|0)$/, (end) => (end === ":" ? ":1" : "1")),
  );
  return {
    name: node.name,
    namespace: node.namespace,
    addresses: [...node.addresses],
    seenAs: () => [...node.addresses, ...gateways],
  };
}
