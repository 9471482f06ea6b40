import { formatCidr } from "../../../shared/net/ip.ts";
import type { Direction, Match, NetworkPolicy, Peer, Port, Rule, Selector } from "../../../shared/policy/mod.ts";

/** Policies in the words of people who write them. */

export const policyName = ({ namespace, name }: Pick<NetworkPolicy, "namespace" | "name">): string =>
  `${namespace}/${name}`;

const listName = { ingress: "from", egress: "to" } as const;

/** Where a rule stands in its policy: `ingress[0], from[1], ports[0]`. */
export function placeOf(direction: Direction, { rule, peer, port }: Pick<Match, "rule" | "peer" | "port">): string {
  const parts = [
    `${direction}[${rule}]`,
    ...(peer === undefined ? [] : [`${listName[direction]}[${peer}]`]),
    ...(port === undefined ? [] : [`ports[${port}]`]),
  ];
  return parts.join(", ");
}

/** `pods with app=web`, `all pods`. */
export const podsWords = ({ text }: Selector): string => (text === "" ? "all pods" : `pods with ${text}`);

/** @param namespace the policy's */
export function peerWords(namespace: string, peer: Peer): string {
  if (peer.t === "block") {
    const except = peer.except.map(formatCidr).join(", ");
    return `${formatCidr(peer.cidr)}${except === "" ? "" : ` without ${except}`}`;
  }
  const pods = peer.pods === undefined ? "all pods" : podsWords(peer.pods);
  if (peer.namespaces === undefined) return `${pods} of namespace ${namespace}`;
  return `${pods} of ${peer.namespaces.text === "" ? "all namespaces" : `namespaces with ${peer.namespaces.text}`}`;
}

export function portWords({ protocol, port, endPort }: Port): string {
  if (port === undefined) return `every ${protocol} port`;
  if (typeof port === "string") return `${protocol} "${port}"`;
  return `${protocol} ${port}${endPort === undefined || endPort === port ? "" : `-${endPort}`}`;
}

/** What a rule allows: `from pods with app=web of namespace x, to TCP 80`. */
export function ruleWords(direction: Direction, namespace: string, { peers, ports }: Rule): string {
  const whom = alternatives(
    peers?.map((peer) => peerWords(namespace, peer)),
    "anybody",
    "nobody",
  );
  const where = alternatives(ports?.map(portWords), "every port of every protocol", "no port");
  return direction === "ingress" ? `from ${whom}, at ${where}` : `to ${whom}, at ${where}`;
}

/** @param none where nothing of the list was understood */
function alternatives(words: readonly string[] | undefined, any: string, none: string): string {
  if (words === undefined) return any;
  return words.length === 0 ? none : words.join(" or ");
}

/** The matching parts alone, of a rule that has more: `from 10.0.0.0/8, at TCP 80`. */
export function matchWords(direction: Direction, { policy, rule, peer, port }: Match): string {
  const { peers, ports } = policy[direction]?.[rule] ?? {};
  const one = <T>(list: readonly T[] | undefined, index: number | undefined): readonly T[] | undefined =>
    index === undefined ? list : list?.slice(index, index + 1);
  const [onlyPeers, onlyPorts] = [one(peers, peer), one(ports, port)];
  return ruleWords(direction, policy.namespace, {
    ...(onlyPeers === undefined ? {} : { peers: onlyPeers }),
    ...(onlyPorts === undefined ? {} : { ports: onlyPorts }),
  });
}

/** In what it isolates pods: `ingress, egress`. */
export const directionsText = ({ ingress, egress }: NetworkPolicy): string =>
  [...(ingress === undefined ? [] : ["ingress"]), ...(egress === undefined ? [] : ["egress"])].join(", ") || "nothing";
