import { bitsOf, type Family, formatIp, type Ip, ipOf, lastOf } from "../../../shared/net/ip.ts";
import {
  type BlockPeer,
  type Direction,
  isInBlock,
  isSubject,
  labelIn,
  type NetworkPolicy,
  type Pod,
  type Rule,
  type Selector,
} from "../../../shared/policy/mod.ts";

/** Pods that no policy tells apart: what holds for one holds for all. */
export interface PodClass {
  readonly t: "pods";
  readonly namespace: string;
  /** What policies ask of them: `app=web,tier=`; empty where they have none of these labels. */
  readonly labels: string;
  /** At least one. */
  readonly pods: readonly Pod[];
}

/** Addresses that no pod has, and that no policy tells apart. */
export interface OutsideClass {
  readonly t: "outside";
  readonly ranges: readonly { readonly first: Ip; readonly last: Ip }[];
}

export type EndClass = PodClass | OutsideClass;

const directions: readonly Direction[] = ["ingress", "egress"];

const rulesOf = (policies: readonly NetworkPolicy[]): Rule[] =>
  policies.flatMap((policy) => directions.flatMap((direction) => policy[direction] ?? []));

/** Pods that talk, and that policies know: with an address, not finished, not on their node's network. */
export function classesOf(pods: Iterable<Pod>, policies: readonly NetworkPolicy[]): readonly PodClass[] {
  const rules = rulesOf(policies);
  const keys = [
    ...new Set(selectorsOf(policies, rules).flatMap(({ requirements }) => requirements.map(({ key }) => key))),
  ].sort();
  const names = new Set(rules.flatMap(({ ports = [] }) => ports.map(({ port }) => port)));
  const blocks = blocksOf(rules);
  const classes = new Map<string, { readonly class: PodClass; readonly pods: Pod[] }>();
  for (const pod of pods) {
    if (!isSubject(pod) || pod.ips.length === 0) continue;
    const { namespace } = pod;
    const labels = keys
      .filter((key) => labelIn(pod.labels, key) !== undefined)
      .map((key) => `${key}=${labelIn(pod.labels, key)}`)
      .join(",");
    const ports = pod.ports.filter(({ name }) => names.has(name));
    const key = JSON.stringify([namespace, labels, ports, pod.ips.map((ip) => [ip.family, signatureOf(ip, blocks)])]);
    const found = classes.get(key);
    if (found !== undefined) {
      found.pods.push(pod);
      continue;
    }
    const list = [pod];
    classes.set(key, { class: { t: "pods", namespace, labels, pods: list }, pods: list });
  }
  return [...classes.values()].map((each) => each.class);
}

function selectorsOf(policies: readonly NetworkPolicy[], rules: readonly Rule[]): Selector[] {
  const ofPeers = rules.flatMap(({ peers = [] }) =>
    peers.flatMap((peer) => (peer.t === "pods" ? (peer.pods ?? []) : [])),
  );
  return [...policies.map(({ pods }) => pods), ...ofPeers];
}

/** Each once. */
function blocksOf(rules: readonly Rule[]): readonly BlockPeer[] {
  const all = rules.flatMap(({ peers = [] }) => peers.filter((peer) => peer.t === "block"));
  const keyed = all.map((block) => [[block.cidr, ...block.except].map(cidrKey).join(" "), block] as const);
  return [...new Map(keyed).values()];
}

const cidrKey = ({ ip, prefix }: BlockPeer["cidr"]): string => `${formatIp(ip)}/${prefix}`;

const signatureOf = (ip: Ip, blocks: readonly BlockPeer[]): string =>
  blocks.map((block) => (isInBlock(block, ip) ? "1" : "0")).join("");

/** @param policies those that judge what comes from outside, or goes there */
export function outsideClasses(
  families: Iterable<Family>,
  policies: readonly NetworkPolicy[],
): readonly OutsideClass[] {
  const blocks = blocksOf(rulesOf(policies));
  return [...families].flatMap((family) => {
    const bounds = blocks
      .flatMap(({ cidr, except }) => [cidr, ...except])
      .filter(({ ip }) => ip.family === family)
      .flatMap((cidr) => [cidr.ip.value, lastOf(cidr).value + 1n]);
    const end = 1n << BigInt(bitsOf(family));
    const starts = [...new Set([0n, ...bounds])].filter((value) => value < end).sort((a, b) => (a < b ? -1 : 1));
    const ranges = starts.map((value, i) => ({
      first: ipOf(family, value),
      last: ipOf(family, (starts[i + 1] ?? end) - 1n),
    }));
    const groups = Map.groupBy(ranges, ({ first }) => signatureOf(first, blocks));
    return [...groups.values()].map((group): OutsideClass => ({ t: "outside", ranges: joined(group) }));
  });
}

function joined(ranges: OutsideClass["ranges"]): OutsideClass["ranges"] {
  const found: { first: Ip; last: Ip }[] = [];
  for (const { first, last } of ranges) {
    const before = found.at(-1);
    if (before !== undefined && before.last.value + 1n === first.value) before.last = last;
    else found.push({ first, last });
  }
  return found;
}

/** The addresses of one of them. */
export const ipsOf = (end: EndClass): readonly Ip[] =>
  end.t === "pods" ? (end.pods[0]?.ips ?? []) : end.ranges.slice(0, 1).map(({ first }) => first);
