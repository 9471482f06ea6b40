import type { Changes, ComputedPolicy, NodeState } from "../../controller/policy/mod.ts";
import { formatIp, type Ip, sameIp } from "../../shared/net/ip.ts";
import { isInBlock, type Pod } from "../../shared/policy/mod.ts";
import type { DrawnQuestion } from "../fakes/random-cluster.ts";

type Members = Map<string, Pod>;

const podName = ({ namespace, name }: Pod): string => `${namespace}/${name}`;
const memberKey = (pod: Pod): string => `${podName(pod)} ${pod.ips.map(formatIp).join(" ")}`;

/** What a node's agent has heard, and what it would let through: strict with what it hears, as the real one must be. */
export class NodeView {
  readonly node: string;
  readonly policies = new Map<string, ComputedPolicy>();
  readonly appliedToGroups = new Map<string, Members>();
  readonly addressGroups = new Map<string, Members>();
  /** Uids, by the names of the pods. */
  readonly pods = new Map<string, string>();

  constructor(node: string, { policies, appliedToGroups, addressGroups, pods }: NodeState) {
    this.node = node;
    for (const pod of pods) this.pods.set(podName(pod), pod.uid);
    for (const policy of policies) this.policies.set(policy.uid, policy);
    for (const { group, members } of appliedToGroups) this.appliedToGroups.set(group.name, byKey(members, podName));
    for (const group of addressGroups) this.addressGroups.set(group.name, byKey(group.members(), memberKey));
  }

  /** @param membersOf of an AppliedToGroup on this node */
  apply(changes: Changes, membersOf: (name: string) => readonly Pod[]): void {
    for (const { t, policy, isRewritten, nodes } of changes.policies)
      this.#change(this.policies, policy.uid, t, nodes, {
        all: () => policy,
        patch: () => (isRewritten ? policy : undefined),
      });
    for (const { t, group, nodes, members } of changes.appliedToGroups)
      this.#change(this.appliedToGroups, group.name, t, nodes, {
        all: () => byKey(membersOf(group.name), podName),
        patch: (before) => patched(before, members.get(this.node), podName),
      });
    for (const { t, group, nodes, members } of changes.addressGroups)
      this.#change(this.addressGroups, group.name, t, nodes, {
        all: () => byKey(group.members(), memberKey),
        patch: (before) => patched(before, members, memberKey),
      });
    for (const { before, after } of changes.pods) {
      if (before?.node === this.node && !this.pods.delete(podName(before)))
        throw new Error(`"${podName(before)}" leaves "${this.node}", where it never was`);
      if (after?.node === this.node) this.pods.set(podName(after), after.uid);
    }
  }

  #change<T>(
    known: Map<string, T>,
    name: string,
    t: "added" | "updated" | "deleted",
    { entered, left }: { readonly entered: readonly string[]; readonly left: readonly string[] },
    to: { readonly all: () => T; readonly patch: (before: T) => T | undefined },
  ): void {
    const before = known.get(name);
    if (left.includes(this.node)) {
      if (before === undefined) throw new Error(`"${name}" leaves "${this.node}", where it never was`);
      known.delete(name);
    } else if (entered.includes(this.node)) {
      if (before !== undefined) throw new Error(`"${name}" comes to "${this.node}", where it is already`);
      known.set(name, to.all());
    } else if (before !== undefined) {
      if (t !== "updated") throw new Error(`"${name}" is ${t}, and "${this.node}" does not hear of it`);
      const after = to.patch(before);
      if (after !== undefined) known.set(name, after);
    }
  }

  /** By addresses and names alone, as flows do it. */
  allows(
    { source, destination, traffic }: DrawnQuestion,
    ips: { source: Ip; destination: Ip },
    end: "egress" | "ingress",
  ): boolean {
    const self = (end === "egress" ? source : destination).pod;
    const name = `${self?.metadata.namespace}/${self?.metadata.name}`;
    const other = end === "egress" ? ips.destination : ips.source;
    let isIsolated = false;
    for (const { appliedTo, rules } of this.policies.values()) {
      const target = this.appliedToGroups.get(appliedTo)?.get(name);
      if (target === undefined) continue;
      for (const rule of rules) {
        if (rule.direction !== end) continue;
        isIsolated = true;
        if (rule.t === "isolate") continue;
        if (rule.peer.blocks.some((block) => isInBlock(block, other)))
          if (isPort(rule, traffic, end === "ingress" ? target : undefined)) return true;
        for (const group of rule.peer.addressGroups) {
          const members = this.addressGroups.get(group);
          if (members === undefined) throw new Error(`"${this.node}" has a rule without its group "${group}"`);
          for (const member of members.values())
            if (
              member.ips.some((ip) => sameIp(ip, other)) &&
              isPort(rule, traffic, end === "ingress" ? target : member)
            )
              return true;
        }
      }
    }
    return !isIsolated;
  }

  /** To be compared. */
  get text(): unknown {
    const texts = (groups: Map<string, Members>): unknown =>
      [...groups].sort().map(([name, members]) => [name, [...members].map(([key, { ports }]) => [key, ports]).sort()]);
    const policies = [...this.policies].sort(([a], [b]) => (a < b ? -1 : 1));
    const groups = { appliedToGroups: texts(this.appliedToGroups), addressGroups: texts(this.addressGroups) };
    return { policies, ...groups, pods: [...this.pods].sort() };
  }
}

function isPort(
  { ports }: ComputedPolicy["rules"][number] & { t: "allow" },
  traffic: DrawnQuestion["traffic"],
  named: Pod | undefined,
): boolean {
  if (ports.length === 0) return true;
  return ports.some(({ protocol, port, endPort }) => {
    if (protocol !== traffic.protocol) return false;
    if (typeof port === "number") return traffic.port >= port && traffic.port <= (endPort ?? port);
    const same = (named?.ports ?? []).filter((of) => of.name === port && of.protocol === protocol);
    return port === undefined || same.some((of) => of.port === traffic.port);
  });
}

const byKey = (pods: Iterable<Pod>, key: (pod: Pod) => string): Members =>
  new Map([...pods].map((pod) => [key(pod), pod]));

interface Patch {
  readonly added: readonly Pod[];
  readonly removed: readonly Pod[];
}

/** All additions first, then all removals, as Antrea's agent does it: a member that is in both would be lost. */
function patched(before: Members, patch: Patch | undefined, key: (pod: Pod) => string): Members | undefined {
  if (patch === undefined) return undefined;
  const members = new Map(before);
  for (const pod of patch.added) members.set(key(pod), pod);
  for (const pod of patch.removed)
    if (!before.has(key(pod)) || !members.delete(key(pod))) throw new Error(`"${key(pod)}" is removed, but no member`);
  return members;
}
