/**
 * A second evaluator of network policies, to compare ours with. Written from the text of the API (networking.k8s.io/v1)
 * alone, on plain objects as the API server has them, without a line of the product's: slow, and as simple as can be.
 */

interface Selector {
  readonly matchLabels?: Readonly<Record<string, string>>;
  readonly matchExpressions?: readonly {
    readonly key: string;
    readonly operator: "In" | "NotIn" | "Exists" | "DoesNotExist";
    readonly values?: readonly string[];
  }[];
}

export interface PlainPeer {
  readonly podSelector?: Selector;
  readonly namespaceSelector?: Selector;
  readonly ipBlock?: { readonly cidr: string; readonly except?: readonly string[] };
}

export interface PlainPort {
  readonly protocol?: string;
  readonly port?: number | string;
  readonly endPort?: number;
}

export interface PlainRule {
  readonly from?: readonly PlainPeer[];
  readonly to?: readonly PlainPeer[];
  readonly ports?: readonly PlainPort[];
}

export interface PlainPolicy {
  readonly metadata: { readonly namespace: string; readonly name: string; readonly uid: string };
  readonly spec: {
    readonly podSelector: Selector;
    readonly policyTypes: readonly string[];
    readonly ingress?: readonly PlainRule[];
    readonly egress?: readonly PlainRule[];
  };
}

export interface PlainPod {
  readonly metadata: {
    readonly namespace: string;
    readonly name: string;
    readonly uid: string;
    readonly labels: Readonly<Record<string, string>>;
  };
  readonly spec: {
    readonly nodeName?: string;
    readonly hostNetwork?: boolean;
    readonly containers: readonly {
      readonly ports?: readonly {
        readonly name?: string;
        readonly containerPort: number;
        readonly protocol?: string;
      }[];
    }[];
  };
  readonly status: { readonly phase: string; readonly podIPs: readonly { readonly ip: string }[] };
}

export interface PlainCluster {
  /** Labels by namespace. */
  readonly namespaces: ReadonlyMap<string, Readonly<Record<string, string>>>;
  readonly policies: readonly PlainPolicy[];
}

/** Who sends or receives, with the address that is used. */
export interface PlainEnd {
  readonly ip: string;
  readonly pod?: PlainPod;
}

export interface PlainTraffic {
  readonly protocol: string;
  readonly port: number;
}

export function mayReach(
  cluster: PlainCluster,
  source: PlainEnd,
  destination: PlainEnd,
  traffic: PlainTraffic,
): boolean {
  // "A pod cannot block access to itself."
  if (source.pod !== undefined && source.pod === destination.pod) return true;
  return mayLeave(cluster, source, destination, traffic) && mayEnter(cluster, source, destination, traffic);
}

function mayLeave(cluster: PlainCluster, source: PlainEnd, destination: PlainEnd, traffic: PlainTraffic): boolean {
  const pod = policed(source);
  if (pod === undefined) return true;
  const policies = policiesOf(cluster, pod, "Egress");
  if (policies.length === 0) return true;
  for (const policy of policies)
    for (const rule of policy.spec.egress ?? []) {
      const anybody = rule.to === undefined || rule.to.length === 0;
      const peers = anybody ? [undefined] : rule.to;
      for (const peer of peers) {
        if (peer !== undefined && !isPeer(cluster, policy, peer, destination)) continue;
        const named = peer?.ipBlock === undefined ? policed(destination) : undefined;
        if (isPort(rule, traffic, named)) return true;
      }
    }
  return false;
}

function mayEnter(cluster: PlainCluster, source: PlainEnd, destination: PlainEnd, traffic: PlainTraffic): boolean {
  const pod = policed(destination);
  if (pod === undefined) return true;
  // Traffic from the node where the pod runs is always allowed.
  if (source.pod?.spec.hostNetwork === true && !isOver(source.pod) && source.pod.spec.nodeName === pod.spec.nodeName)
    return true;
  const policies = policiesOf(cluster, pod, "Ingress");
  if (policies.length === 0) return true;
  for (const policy of policies)
    for (const rule of policy.spec.ingress ?? []) {
      const anybody = rule.from === undefined || rule.from.length === 0;
      const from = anybody || (rule.from ?? []).some((peer) => isPeer(cluster, policy, peer, source));
      if (from && isPort(rule, traffic, pod)) return true;
    }
  return false;
}

const isOver = (pod: PlainPod): boolean => pod.status.phase === "Succeeded" || pod.status.phase === "Failed";

function policed({ pod }: PlainEnd): PlainPod | undefined {
  if (pod === undefined || pod.spec.hostNetwork === true || isOver(pod)) return undefined;
  return pod;
}

function policiesOf({ policies }: PlainCluster, pod: PlainPod, type: "Ingress" | "Egress"): PlainPolicy[] {
  return policies.filter(
    ({ metadata, spec }) =>
      metadata.namespace === pod.metadata.namespace &&
      spec.policyTypes.includes(type) &&
      isSelected(spec.podSelector, pod.metadata.labels),
  );
}

function isPeer({ namespaces }: PlainCluster, policy: PlainPolicy, peer: PlainPeer, end: PlainEnd): boolean {
  if (peer.ipBlock !== undefined) {
    const { cidr, except = [] } = peer.ipBlock;
    return isWithin(end.ip, cidr) && !except.some((each) => isWithin(end.ip, each));
  }
  const pod = policed(end);
  if (pod === undefined || pod.status.podIPs.length === 0) return false;
  const { namespace, labels } = pod.metadata;
  if (peer.namespaceSelector === undefined) {
    if (namespace !== policy.metadata.namespace) return false;
  } else {
    // "An empty selector matches all": also a namespace of whose labels nothing is known yet.
    const { matchLabels = {}, matchExpressions = [] } = peer.namespaceSelector;
    const isEmpty = Object.keys(matchLabels).length === 0 && matchExpressions.length === 0;
    const own = namespaces.get(namespace);
    if (own === undefined ? !isEmpty : !isSelected(peer.namespaceSelector, own)) return false;
  }
  return peer.podSelector === undefined || isSelected(peer.podSelector, labels);
}

function isSelected(
  { matchLabels = {}, matchExpressions = [] }: Selector,
  labels: Readonly<Record<string, string>>,
): boolean {
  const has = new Map(Object.entries(labels));
  for (const [key, value] of Object.entries(matchLabels)) if (has.get(key) !== value) return false;
  for (const { key, operator, values = [] } of matchExpressions) {
    const value = has.get(key);
    if (operator === "Exists" && value === undefined) return false;
    if (operator === "DoesNotExist" && value !== undefined) return false;
    if (operator === "In" && (value === undefined || !values.includes(value))) return false;
    if (operator === "NotIn" && value !== undefined && values.includes(value)) return false;
  }
  return true;
}

function isPort({ ports = [] }: PlainRule, traffic: PlainTraffic, target: PlainPod | undefined): boolean {
  if (ports.length === 0) return true;
  for (const { protocol = "TCP", port, endPort } of ports) {
    if (protocol !== traffic.protocol) continue;
    if (port === undefined) return true;
    if (typeof port === "number") {
      if (port === traffic.port || (endPort !== undefined && port <= traffic.port && traffic.port <= endPort))
        return true;
      continue;
    }
    for (const container of target?.spec.containers ?? [])
      for (const each of container.ports ?? [])
        if (each.name === port && (each.protocol ?? "TCP") === protocol && each.containerPort === traffic.port)
          return true;
  }
  return false;
}

/** By the digits of both addresses, bit for bit. */
function isWithin(ip: string, cidr: string): boolean {
  const [network = "", length = ""] = cidr.split("/");
  if (ip.includes(":") !== network.includes(":")) return false;
  return bitsOf(ip).startsWith(bitsOf(network).slice(0, Number(length)));
}

const known = new Map<string, string>();

function bitsOf(ip: string): string {
  const there = known.get(ip);
  if (there !== undefined) return there;
  const binary = (text: string, base: number, width: number): string =>
    Number.parseInt(text, base).toString(2).padStart(width, "0");
  let bits: string;
  if (ip.includes(":")) {
    const [head = "", tail] = ip.split("::");
    const groups = (text: string): string[] => text.split(":").filter((group) => group !== "");
    const [front, back] = [groups(head), groups(tail ?? "")];
    const zeros = Array.from({ length: 8 - front.length - back.length }, () => "0");
    bits = [...front, ...zeros, ...back].map((group) => binary(group, 16, 16)).join("");
  } else
    bits = ip
      .split(".")
      .map((octet) => binary(octet, 10, 8))
      .join("");
  known.set(ip, bits);
  return bits;
}
