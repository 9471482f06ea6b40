import type { NodePolicies } from "../../agent/datapath/policies.ts";
import {
  addressMember,
  type Changes,
  groupMessage,
  type NodeState,
  patchMessage,
  policyMessage,
  targetMember,
} from "../../controller/policy/mod.ts";
import type { Owner } from "../../shared/cni/types.ts";
import { formatIp } from "../../shared/net/ip.ts";
import type { Pod } from "../../shared/policy/mod.ts";
import {
  ComputedPod,
  computedPodKind,
  GroupMessage,
  GroupPatch,
  NetworkPolicyMessage,
  type WatchEventType,
} from "../../shared/proto/control-plane-messages.ts";
import type { Told } from "../fakes/policy-events.ts";

const metadata = { generateName: "", selfLink: "", resourceVersion: "", generation: 0, annotations: [] };
const created = { seconds: 0, nanoseconds: 0 };

export function computedPod({ namespace, name, uid }: Pod, type: WatchEventType = "ADDED"): Told {
  const message = { metadata: { ...metadata, namespace, name, uid, creationTimestamp: created } };
  return { type, kind: computedPodKind, raw: ComputedPod.encode(message) };
}

/** What a controller tells a node at first. @param pods of the node */
export const wholeState = ({ policies, appliedToGroups, addressGroups }: NodeState, pods: Iterable<Pod>): Told[] => [
  ...addressGroups.map((group) => groupAdded("AddressGroup", group.name, group.members(), addressMember)),
  ...appliedToGroups.map(({ group, members }) => groupAdded("AppliedToGroup", group.name, members, targetMember)),
  ...policies.map((policy) => policyTold("ADDED", policy)),
  ...Array.from(pods, (pod) => computedPod(pod)),
];

/** What it tells afterwards: nothing is taken away before what replaces it has come. */
export function changesFor(
  node: string,
  { policies, appliedToGroups, addressGroups }: Changes,
  now: NodeState,
): Told[] {
  const first: Told[] = [];
  const then: Told[] = [];
  const last: Told[] = [];
  const fateOf = ({ t, nodes }: { readonly t: string; readonly nodes: Changes["policies"][number]["nodes"] }) =>
    nodes.left.includes(node) ? "left" : nodes.entered.includes(node) ? "entered" : t;
  const patch = (
    kind: string,
    name: string,
    change: { added: readonly Pod[]; removed: readonly Pod[] },
    as: typeof addressMember,
  ): void => {
    const told = (part: Partial<typeof change>): Told => ({
      type: "MODIFIED",
      kind: `${kind}Patch`,
      raw: GroupPatch.encode(patchMessage(name, { added: [], removed: [], ...part }, as)),
    });
    if (change.added.length > 0) first.push(told({ added: change.added }));
    if (change.removed.length > 0) last.push(told({ removed: change.removed }));
  };
  const here = new Set(now.addressGroups.map(({ name }) => name));
  for (const { group, members, ...change } of addressGroups) {
    const fate = fateOf(change);
    if (fate === "left") last.push(gone("AddressGroup", group.name));
    else if (fate === "entered") first.push(groupAdded("AddressGroup", group.name, group.members(), addressMember));
    else if (here.has(group.name)) patch("AddressGroup", group.name, members, addressMember);
  }
  for (const { group, members, ...change } of appliedToGroups) {
    const fate = fateOf(change);
    const own = now.appliedToGroups.find((each) => each.group === group)?.members ?? [];
    if (fate === "left") last.push(gone("AppliedToGroup", group.name));
    else if (fate === "entered") first.push(groupAdded("AppliedToGroup", group.name, own, targetMember));
    else patch("AppliedToGroup", group.name, members.get(node) ?? { added: [], removed: [] }, targetMember);
  }
  const known = new Set(now.policies.map(({ uid }) => uid));
  for (const { policy, isRewritten, ...change } of policies) {
    const fate = fateOf(change);
    if (fate === "left") last.push(gone("NetworkPolicy", policy.uid));
    else if (fate === "entered") then.push(policyTold("ADDED", policy));
    else if (isRewritten && known.has(policy.uid)) then.push(policyTold("MODIFIED", policy));
  }
  return [...first, ...then, ...last];
}

const policyTold = (type: WatchEventType, policy: NodeState["policies"][number]): Told => ({
  type,
  kind: "NetworkPolicy",
  raw: NetworkPolicyMessage.encode(policyMessage(policy)),
});

const groupAdded = (kind: string, name: string, members: Iterable<Pod>, as: typeof addressMember): Told => ({
  type: "ADDED",
  kind,
  raw: GroupMessage.encode(groupMessage(name, members, as)),
});

function gone(kind: string, name: string): Told {
  const all = { ...metadata, namespace: "", name, uid: name, creationTimestamp: created };
  return { type: "DELETED", kind, raw: GroupMessage.encode({ metadata: all, members: [] }) };
}

/** The attachment of a pod in tests. */
export const ownerOf = ({ namespace, name, uid }: Pod | { namespace: string; name: string; uid: string }): Owner => ({
  network: "pods",
  sandboxId: `${namespace}.${name}.${uid}`,
  ifname: "eth0",
});

/** What is to be enforced, to be compared: in no order. */
export function textOf({ rules, isolated }: NodePolicies): unknown {
  const text = (rule: NodePolicies["rules"] extends ReadonlyMap<string, infer R> ? R : never): unknown => ({
    ...rule,
    targets: rule.targets.map(({ sandboxId }) => sandboxId).sort(),
    peers: rule.peers && {
      blocks: rule.peers.blocks,
      sets: rule.peers.sets.map(({ name, ips }) => [name, ips.map(formatIp).sort()]).sort(),
    },
  });
  return {
    rules: [...rules].map(([id, rule]) => [id, text(rule)] as const).sort(([a], [b]) => (a < b ? -1 : 1)),
    isolated: [...isolated]
      .map(([key, { directions, by }]) => [key, [...directions].sort(), by.map(({ uid }) => uid).sort()] as const)
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  };
}
