import type { Cidr, Ip } from "../../shared/net/ip.ts";
import type { BlockPeer, Pod, Port } from "../../shared/policy/mod.ts";
import { ipBytes } from "../../shared/proto/control-plane-addresses.ts";
import type {
  ComputedPod,
  GroupMember,
  GroupMessage,
  GroupPatch,
  NetworkPolicyMessage,
  ObjectMeta,
} from "../../shared/proto/control-plane-messages.ts";
import type { ComputedPolicy, ComputedRule } from "./computed-policy.ts";
import type { MembersChange } from "./since-last-look.ts";

/** What was computed as the messages that agents get. */

type RuleMessage = NetworkPolicyMessage["rules"][number];
type PeerMessage = RuleMessage["from"];

/** The name of an object is its uid. */
export function metadataOf(name: string, generation = 0): ObjectMeta {
  const nothing = { generateName: "", namespace: "", selfLink: "", resourceVersion: "", annotations: [] };
  return { ...nothing, name, uid: name, generation, creationTimestamp: { seconds: 0, nanoseconds: 0 } };
}

/** A policy without what it says, as it is told that it is gone. */
export const policyReference = (policy: ComputedPolicy): NetworkPolicyMessage => ({
  ...policyMessage({ ...policy, rules: [] }),
  appliedToGroups: [],
});

/** Who a pod is, and nothing of what it is. */
export const podMessage = ({ namespace, name, uid }: Pod): ComputedPod => ({
  metadata: { ...metadataOf(name), namespace, uid },
});

export function policyMessage({
  uid,
  namespace,
  name,
  generation,
  appliedTo,
  rules,
}: ComputedPolicy): NetworkPolicyMessage {
  return {
    metadata: metadataOf(uid, generation),
    rules: rules.map(ruleMessage),
    appliedToGroups: [appliedTo],
    sourceRef: { type: "K8sNetworkPolicy", namespace, name, uid },
  };
}

const nobody: PeerMessage = { addressGroups: [], ipBlocks: [] };
/** NetworkPolicies of Kubernetes have no order. */
const noPriority = -1;

function ruleMessage(rule: ComputedRule): RuleMessage {
  const direction = rule.direction === "ingress" ? "In" : "Out";
  const rest = { enableLogging: false, appliedToGroups: [], name: "", logLabel: "" };
  if (rule.t === "isolate")
    return { direction, from: nobody, to: nobody, services: [], priority: 0, action: "", ...rest };
  const { addressGroups, blocks } = rule.peer;
  const peer = { addressGroups, ipBlocks: blocks.map(blockMessage) };
  return {
    direction,
    from: rule.direction === "ingress" ? peer : nobody,
    to: rule.direction === "egress" ? peer : nobody,
    services: rule.ports.map(serviceMessage),
    priority: noPriority,
    action: "Allow",
    ...rest,
  };
}

function serviceMessage({ protocol, port, endPort = 0 }: Port): RuleMessage["services"][number] {
  const value =
    typeof port === "number" ? { type: 0, number: port, text: "" } : { type: 1, number: 0, text: port ?? "" };
  return { protocol, ...(port === undefined ? {} : { port: value }), endPort, groupAddress: "" };
}

const blockMessage = ({ cidr, except }: BlockPeer): PeerMessage["ipBlocks"][number] => ({
  cidr: netMessage(cidr),
  except: except.map(netMessage),
});

const netMessage = ({ ip, prefix }: Cidr): { ip: Uint8Array; prefixLength: number } => ({
  ip: ipBytes(ip),
  prefixLength: prefix,
});

const memberOf = ({ namespace, name, ports }: Pod, ips: readonly Ip[]): GroupMember => ({
  pod: { namespace, name },
  ips: ips.map(ipBytes),
  ports,
});

/** Of an AddressGroup. */
export const addressMember = (pod: Pod): GroupMember => memberOf(pod, pod.ips);

/** Of an AppliedToGroup: the node knows the addresses of its own pods. */
export const targetMember = (pod: Pod): GroupMember => memberOf(pod, []);

export const groupMessage = (name: string, members: Iterable<Pod>, as: (pod: Pod) => GroupMember): GroupMessage => ({
  metadata: metadataOf(name),
  members: Array.from(members, as),
});

export const patchMessage = (
  name: string,
  { added, removed }: MembersChange,
  as: (pod: Pod) => GroupMember,
): GroupPatch => ({ metadata: metadataOf(name), added: added.map(as), removed: removed.map(as) });
