import type {
  AddressSet,
  Isolation,
  NodePolicies,
  PodRule,
  PolicyName,
  RulePeers,
  RulePorts,
} from "../../agent/datapath/policies.ts";
import { ownerKey } from "../../shared/cni/owner-key.ts";
import type { Owner } from "../../shared/cni/types.ts";
import { formatIp, type Ip, sameIp } from "../../shared/net/ip.ts";
import {
  type Cluster,
  type Direction,
  isInBlock,
  isSubject,
  type Labels,
  type NetworkPolicy,
  type Pod,
  type PodPeer,
  type Port,
  type Rule,
  selects,
} from "../../shared/policy/mod.ts";

/** All that policies depend on. */
export interface World {
  readonly pods: readonly Pod[];
  readonly policies: readonly NetworkPolicy[];
  readonly namespaces: ReadonlyMap<string, Labels>;
}

export const clusterOf = ({ policies, namespaces }: World): Cluster => ({
  namespaceLabels: (name) => namespaces.get(name),
  policiesIn: (name) => policies.filter(({ namespace }) => namespace === name),
});

const directions = ["ingress", "egress"] as const;

/**
 * What a node is to enforce in such a world, by going through everything: for tests of data paths, which need no
 * controller for it.
 * @param node absent: the pods of all nodes
 * @param ownerOf attachment of a pod
 */
export function nodePolicies(world: World, ownerOf: (pod: Pod) => Owner, node?: string): NodePolicies {
  const rules = new Map<string, PodRule>();
  const isolated = new Map<string, Isolation>();
  const here = world.pods.filter((pod) => isSubject(pod) && (node === undefined || pod.node === node));
  for (const policy of world.policies) {
    const by: PolicyName = { namespace: policy.namespace, name: policy.name, uid: policy.uid };
    const targets = here.filter((pod) => pod.namespace === policy.namespace && selects(policy.pods, pod.labels));
    if (targets.length === 0) continue;
    for (const direction of directions) {
      for (const target of policy[direction] === undefined ? [] : targets)
        isolate(isolated, ownerOf(target), direction, by);
      for (const [i, rule] of (policy[direction] ?? []).entries())
        for (const [part, { pods, ...allowed }] of partsOf(world, policy, direction, rule, targets).entries()) {
          const id = `${policy.uid}/${direction}/${i}/${part}`;
          rules.set(id, { id, policy: by, direction, targets: pods.map(ownerOf), ...allowed });
        }
    }
  }
  return { rules, isolated };
}

function isolate(isolated: Map<string, Isolation>, owner: Owner, direction: Direction, by: PolicyName): void {
  const before = isolated.get(ownerKey(owner));
  isolated.set(ownerKey(owner), {
    owner,
    directions: [...new Set([...(before?.directions ?? []), direction])],
    by: [...(before?.by ?? []).filter(({ uid }) => uid !== by.uid), by],
  });
}

/** A rule for some of its targets. */
type Part = Pick<PodRule, "peers" | "ports"> & { readonly pods: readonly Pod[] };

/** More than one where a name means another number at another pod. */
function partsOf(
  world: World,
  policy: NetworkPolicy,
  direction: Direction,
  rule: Rule,
  targets: readonly Pod[],
): Part[] {
  const { ports } = rule;
  const peers = peersOf(world, policy, rule);
  if (ports === undefined) return [{ pods: targets, ...peers }];
  if (ports.every(({ port }) => typeof port !== "string"))
    return [{ pods: targets, ...peers, ports: resolved(ports, []) }];
  if (direction === "ingress") return byPorts(ports, targets).map(({ pods, ports }) => ({ pods, ...peers, ports }));
  // The names are the destinations' to resolve, and blocks have no names.
  const blocks: Part = {
    pods: targets,
    ...(peers.peers === undefined ? {} : { peers: { sets: [], blocks: peers.peers.blocks } }),
    ports: resolved(ports, []),
  };
  const members = peers.members ?? world.pods.filter((pod) => isSubject(pod) && pod.ips.length > 0);
  const named = byPorts(ports, members).map(({ pods, ports }, i): Part => {
    const name = `${policy.uid} ${policy.egress?.indexOf(rule)} ${i}`;
    return { pods: targets, peers: { sets: [setOf(name, pods)], blocks: [] }, ports };
  });
  return [blocks, ...named];
}

/** Pods by what a list of ports means to them. */
function byPorts(ports: readonly Port[], pods: readonly Pod[]): { pods: Pod[]; ports: readonly RulePorts[] }[] {
  const groups = new Map<string, { pods: Pod[]; ports: readonly RulePorts[] }>();
  for (const pod of pods) {
    const own = resolved(ports, pod.ports);
    const group = groups.get(JSON.stringify(own));
    if (group === undefined) groups.set(JSON.stringify(own), { pods: [pod], ports: own });
    else group.pods.push(pod);
  }
  return [...groups.values()];
}

const resolved = (ports: readonly Port[], names: Pod["ports"]): RulePorts[] =>
  ports.flatMap(({ protocol, port, endPort }): RulePorts[] => {
    if (port === undefined) return [{ protocol }];
    if (typeof port === "number")
      return [{ protocol, first: port, ...(endPort === undefined ? {} : { last: endPort }) }];
    const same = names.filter((of) => of.name === port && of.protocol === protocol);
    return same.map((of) => ({ protocol, first: of.port }));
  });

function peersOf(
  world: World,
  { namespace }: NetworkPolicy,
  { peers }: Rule,
): { peers?: RulePeers; members?: readonly Pod[] } {
  if (peers === undefined) return {};
  const groups = peers.flatMap((peer) => {
    if (peer.t === "block") return [];
    const name = `${peer.namespaces === undefined ? `=${namespace}` : peer.namespaces.text} & ${peer.pods?.text}`;
    return [{ name, pods: membersOf(world, namespace, peer) }];
  });
  return {
    peers: {
      sets: groups.map(({ name, pods }) => setOf(name, pods)),
      blocks: peers.filter((peer) => peer.t === "block"),
    },
    members: [...new Set(groups.flatMap(({ pods }) => pods))],
  };
}

const membersOf = ({ pods, namespaces }: World, namespace: string, peer: PodPeer): readonly Pod[] =>
  pods.filter((pod) => {
    if (!isSubject(pod) || pod.ips.length === 0) return false;
    if (peer.pods !== undefined && !selects(peer.pods, pod.labels)) return false;
    if (peer.namespaces === undefined) return pod.namespace === namespace;
    const labels = namespaces.get(pod.namespace);
    return labels === undefined ? peer.namespaces.text === "" : selects(peer.namespaces, labels);
  });

const setOf = (name: string, pods: readonly Pod[]): AddressSet => ({
  name,
  ips: [...new Map(pods.flatMap(({ ips }) => ips).map((ip) => [formatIp(ip), ip])).values()],
});

/** The first packet of a connection, as it is on the wire. */
export interface Packet {
  readonly source: Ip;
  readonly destination: Ip;
  readonly protocol: string;
  readonly port: number;
}

/** Whether what a node is to enforce lets a packet out of a pod of it, or in. */
export function lets(
  { rules, isolated }: NodePolicies,
  owner: Owner,
  direction: Direction,
  { source, destination, protocol, port }: Packet,
): boolean {
  if (!isolated.get(ownerKey(owner))?.directions.includes(direction)) return true;
  const other = direction === "ingress" ? source : destination;
  return [...rules.values()].some((rule) => {
    const { peers, ports } = rule;
    if (rule.direction !== direction || !rule.targets.some((target) => ownerKey(target) === ownerKey(owner)))
      return false;
    const isPeer =
      peers === undefined ||
      peers.blocks.some((block) => isInBlock(block, other)) ||
      peers.sets.some(({ ips }) => ips.some((ip) => sameIp(ip, other)));
    return isPeer && (ports === undefined || ports.some((of) => isPort(of, protocol, port)));
  });
}

const isPort = ({ protocol, first, last = first }: RulePorts, asked: string, port: number): boolean =>
  protocol === asked && (first === undefined || (port >= first && port <= (last ?? first)));
