import { type Cidr, contains, firstOf, formatIp, type Ip } from "../../../shared/net/ip.ts";
import { multicast } from "../addresses.ts";
import type { Projects } from "./project-rules.ts";

/** A network whose pods may be hidden behind the node. */
export interface MasqueradedNetwork {
  /** Interface that leads to its pods. */
  readonly bridge: string;
  readonly subnets: readonly Cidr[];
  readonly masquerade: boolean;
  /** Where its pods go under their own addresses, beside their own subnets. */
  readonly exempt?: readonly Cidr[];
  /** Of the node's own making, without meaning anywhere else: hidden behind the node wherever they go. */
  readonly hidden?: readonly Ip[];
  /** Projects are kept apart: what its pods send to pods by way of the node keeps its source. */
  readonly multitenant?: boolean;
}

const block = (subnet: Cidr): string => `${formatIp(firstOf(subnet))}/${subnet.prefix}`;

/** nftables refuses a set with a block inside another. In order of their addresses, as there may be thousands. */
function minimal(blocks: readonly Cidr[]): readonly Cidr[] {
  const kept: Cidr[] = [];
  for (const block of blocks.toSorted(byAddress)) {
    const last = kept.at(-1);
    if (last === undefined || !contains(last, block.ip)) kept.push(block);
  }
  return kept;
}

const byAddress = (a: Cidr, b: Cidr): number => {
  const [left, right] = [firstOf(a), firstOf(b)];
  if (left.family !== right.family) return left.family - right.family;
  if (left.value !== right.value) return left.value < right.value ? -1 : 1;
  return a.prefix - b.prefix;
};

/** What leaves the network for anywhere but itself, what is exempt and multicast groups. */
function leaving(network: MasqueradedNetwork, subnet: Cidr): string {
  const { family } = subnet.ip;
  const protocol = family === 4 ? "ip" : "ip6";
  const exempt = (network.exempt ?? []).filter(({ ip }) => ip.family === family);
  const kept = minimal([subnet, ...exempt, multicast[family]]).map(block);
  const addresses = `${protocol} saddr ${block(subnet)} ${protocol} daddr != { ${kept.join(", ")} }`;
  return `${addresses} oifname != "${network.bridge}"`;
}

const leavingHidden = ({ bridge }: MasqueradedNetwork, ip: Ip): string =>
  `${ip.family === 4 ? "ip" : "ip6"} saddr ${formatIp(ip)} oifname != "${bridge}"`;

/** Packets that are to have the node's address; of subnets, so no pod changes them. */
const toHide = (network: MasqueradedNetwork): readonly string[] => [
  ...(network.masquerade ? network.subnets.map((subnet) => leaving(network, subnet)) : []),
  ...(network.hidden ?? []).map((ip) => leavingHidden(network, ip)),
];

/** For the first packets of connections on their way out. */
export const masqueradeRules = (network: MasqueradedNetwork): readonly string[] =>
  toHide(network).map((packets) => `${packets} masquerade`);

/**
 * For what still has a pod's address behind those: connection tracking knows no connection of it (a reset out of
 * nowhere), or no translation of its protocol. Answers to who has reached the pod under its own address are none of it.
 */
export function unhiddenRules(network: MasqueradedNetwork): readonly string[] {
  const packets = toHide(network);
  return packets.length === 0 ? [] : ["ct direction reply accept", ...packets.map((each) => `${each} drop`)];
}

/** For what keeps its source; none where projects are not kept apart. */
export const projectsOf = ({ bridge, subnets, exempt = [], multitenant = false }: MasqueradedNetwork): Projects => ({
  gateway: bridge,
  networks: multitenant ? minimal([...subnets, ...exempt]) : [],
});
