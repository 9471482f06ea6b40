import type { Ip } from "../net/ip.ts";
import { type Labels, selects, selectsAll } from "./label-selector.ts";
import {
  type Direction,
  isInBlock,
  type NetworkPolicy,
  type Peer,
  type PodPeer,
  type Port,
  type Rule,
} from "./network-policy.ts";
import { isSubject, type Pod } from "./pod.ts";

/**
 * May one side reach the other, and which policies say so: the rules of NetworkPolicy (networking.k8s.io/v1) for the
 * first packet of a connection, as it is on the wire where policies are enforced: a service's address has become an
 * endpoint's. Replies follow the connection.
 */

/** What is known of the cluster. */
export interface Cluster {
  /** `undefined` for a namespace that is not known: only the selector of all namespaces matches it. */
  namespaceLabels(namespace: string): Labels | undefined;
  policiesIn(namespace: string): Iterable<NetworkPolicy>;
}

/** Who sends or receives. */
export type Endpoint =
  /** `ip` is the one of its addresses that is used; absent for a pod that has none yet. */
  | { readonly t: "pod"; readonly pod: Pod; readonly ip?: Ip }
  | { readonly t: "node"; readonly node: string; readonly ip: Ip }
  | { readonly t: "outside"; readonly ip: Ip };

export interface Traffic {
  /** TCP, UDP, SCTP, ICMP, ICMPv6, ARP, or any other. */
  readonly protocol: string;
  /** The destination's. */
  readonly port?: number;
  readonly icmpType?: number;
}

export interface Question {
  readonly source: Endpoint;
  readonly destination: Endpoint;
  readonly traffic: Traffic;
}

/** One rule that allows the traffic, by the indexes in the policy; a peer or port is absent where the rule has none. */
export interface Match {
  readonly policy: NetworkPolicy;
  readonly rule: number;
  readonly peer?: number;
  readonly port?: number;
}

/** What one end says. */
export type Side =
  /** Policies do not apply: the end is no pod of theirs, or the traffic is not theirs to judge. */
  | { readonly t: "exempt"; readonly because: Exemption }
  /** No policy isolates the pod in this direction. */
  | { readonly t: "open" }
  | { readonly t: "allowed"; readonly isolatedBy: readonly NetworkPolicy[]; readonly by: readonly Match[] }
  | { readonly t: "denied"; readonly isolatedBy: readonly NetworkPolicy[] };

export type Exemption = "no subject" | "itself" | "own node" | "neighbour discovery";

export interface Verdict {
  readonly allowed: boolean;
  readonly egress: Side;
  readonly ingress: Side;
}

export function evaluate(cluster: Cluster, question: Question): Verdict {
  const [egress, ingress] = [judge(cluster, "egress", question), judge(cluster, "ingress", question)];
  return { allowed: egress.t !== "denied" && ingress.t !== "denied", egress, ingress };
}

/** What one end says, whatever the other does. */
export function judge(cluster: Cluster, direction: Direction, question: Question): Side {
  const subject = podAt(direction === "egress" ? question.source : question.destination);
  if (subject === undefined) return { t: "exempt", because: "no subject" };
  const exempt = exemptionOf(direction, subject, question);
  if (exempt !== undefined) return { t: "exempt", because: exempt };
  const isolatedBy: NetworkPolicy[] = [];
  const by: Match[] = [];
  for (const policy of cluster.policiesIn(subject.namespace)) {
    const rules = policy[direction];
    if (rules === undefined || !selects(policy.pods, subject.labels)) continue;
    isolatedBy.push(policy);
    for (const [index, rule] of rules.entries()) {
      const match = matchOf(cluster, policy, direction, rule, question);
      if (match !== undefined) by.push({ policy, rule: index, ...match });
    }
  }
  if (isolatedBy.length === 0) return { t: "open" };
  return by.length > 0 ? { t: "allowed", isolatedBy, by } : { t: "denied", isolatedBy };
}

/** A rule that does not allow the traffic, though one of its two halves matches. */
export interface NearMatch extends Match {
  readonly lacks: "peer" | "port";
}

/** Rules of the policies that isolate a pod which would allow the traffic but for its port, or but for who is there. */
export function nearMatches(cluster: Cluster, direction: Direction, question: Question): readonly NearMatch[] {
  const side = judge(cluster, direction, question);
  if (side.t !== "denied") return [];
  return side.isolatedBy.flatMap((policy) =>
    (policy[direction] ?? []).flatMap((rule, index): NearMatch[] => {
      const { peers, ports } = rule;
      const atAnyPort = matchOf(cluster, policy, direction, peers === undefined ? {} : { peers }, question);
      if (atAnyPort !== undefined) return [{ policy, rule: index, ...atAnyPort, lacks: "port" }];
      const ofAnybody = matchOf(cluster, policy, direction, ports === undefined ? {} : { ports }, question);
      return ofAnybody === undefined ? [] : [{ policy, rule: index, ...ofAnybody, lacks: "peer" }];
    }),
  );
}

/** The pod that policies know at this end. */
function podAt(end: Endpoint): Pod | undefined {
  return end.t === "pod" && isSubject(end.pod) ? end.pod : undefined;
}

const firstDiscoveryType = 133;
const lastDiscoveryType = 137;

function exemptionOf(
  direction: Direction,
  subject: Pod,
  { source, destination, traffic }: Question,
): Exemption | undefined {
  const { protocol, icmpType = -1 } = traffic;
  const isDiscovery = protocol === "ICMPv6" && icmpType >= firstDiscoveryType && icmpType <= lastDiscoveryType;
  if (protocol === "ARP" || isDiscovery) return "neighbour discovery";
  const other = direction === "egress" ? destination : source;
  if (other.t === "pod" && isSamePod(other.pod, subject)) return "itself";
  // The kubelet's probes must arrive, and a process of the node could enter the pod anyway.
  return direction === "ingress" && subject.node !== undefined && nodeOf(other) === subject.node
    ? "own node"
    : undefined;
}

const isSamePod = (a: Pod, b: Pod): boolean => a.namespace === b.namespace && a.name === b.name && a.uid === b.uid;

/** The node whose address the end has. */
function nodeOf(end: Endpoint): string | undefined {
  if (end.t === "node") return end.node;
  return end.t === "pod" && end.pod.hostNetwork && !end.pod.finished ? end.pod.node : undefined;
}

function matchOf(
  cluster: Cluster,
  { namespace }: NetworkPolicy,
  direction: Direction,
  { peers, ports }: Rule,
  { source, destination, traffic }: Question,
): Pick<Match, "peer" | "port"> | undefined {
  const other = direction === "egress" ? destination : source;
  for (const [peer, each] of (peers ?? [undefined]).entries()) {
    if (each !== undefined && !covers(cluster, namespace, each, other)) continue;
    // The name of a port is the destination pod's to resolve; an address that was written down has no pod.
    const target = direction === "egress" && each?.t === "block" ? undefined : podAt(destination);
    const port = ports === undefined ? -1 : ports.findIndex((of) => fits(of, traffic, target));
    if (ports !== undefined && port < 0) continue;
    return { ...(each === undefined ? {} : { peer }), ...(ports === undefined ? {} : { port }) };
  }
  return undefined;
}

function covers(cluster: Cluster, namespace: string, peer: Peer, other: Endpoint): boolean {
  if (peer.t === "block") return other.ip !== undefined && isInBlock(peer, other.ip);
  const pod = podAt(other);
  return pod !== undefined && isAmong(cluster, namespace, peer, pod);
}

/** Whether the peer of a policy in this namespace has the pod among its own. */
export function isAmong(cluster: Cluster, namespace: string, peer: PodPeer, pod: Pod): boolean {
  if (!isSubject(pod) || pod.ips.length === 0) return false;
  if (peer.pods !== undefined && !selects(peer.pods, pod.labels)) return false;
  if (peer.namespaces === undefined) return pod.namespace === namespace;
  const labels = cluster.namespaceLabels(pod.namespace);
  return labels === undefined ? selectsAll(peer.namespaces) : selects(peer.namespaces, labels);
}

function fits({ protocol, port, endPort }: Port, traffic: Traffic, target: Pod | undefined): boolean {
  if (traffic.protocol !== protocol) return false;
  if (port === undefined) return true;
  const asked = traffic.port ?? -1;
  if (typeof port === "number") return asked >= port && asked <= (endPort ?? port);
  return (target?.ports ?? []).some((of) => of.name === port && of.protocol === protocol && of.port === asked);
}
