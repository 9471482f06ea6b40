import { type Cidr, contains, type Family, firstOf, formatCidr, formatIp, type Ip } from "../../../shared/net/ip.ts";
import { linkLocal6, loopback, multicast, unspecified6 } from "../addresses.ts";

/** A network whose pods may be hidden behind the node. */
export interface MasqueradedNetwork {
  /** Interface that leads to its pods. */
  readonly bridge: string;
  readonly subnets: readonly Cidr[];
  readonly masquerade: boolean;
  /** Where its pods go under their own addresses, beside their own subnets. */
  readonly exempt?: readonly Cidr[];
  /** Of the node's own making, without meaning anywhere else: hidden behind the node wherever they go. */
  readonly nodeLocal?: readonly Ip[];
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
function packetsLeaving(network: MasqueradedNetwork, subnet: Cidr): string {
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
const packetsToMasquerade = (network: MasqueradedNetwork): readonly string[] => [
  ...(network.masquerade ? network.subnets.map((subnet) => packetsLeaving(network, subnet)) : []),
  ...(network.nodeLocal ?? []).map((ip) => leavingHidden(network, ip)),
];

/** For the first packets of connections on their way out. */
export const masqueradeRules = (network: MasqueradedNetwork): readonly string[] =>
  packetsToMasquerade(network).map((packets) => `${packets} masquerade`);

/**
 * For what still has a pod's address behind those: connection tracking knows no connection of it (a reset out of
 * nowhere), or no translation of its protocol. Answers to who has reached the pod under its own address are none of it.
 */
export function unmasqueradedRules(network: MasqueradedNetwork): readonly string[] {
  const packets = packetsToMasquerade(network);
  return packets.length === 0 ? [] : ["ct direction reply accept", ...packets.map((each) => `${each} drop`)];
}

/** For what keeps its source; none where projects are not kept apart. */
export const projectsOf = ({ bridge, subnets, exempt = [], multitenant = false }: MasqueradedNetwork): Projects => ({
  gateway: bridge,
  networks: multitenant ? minimal([...subnets, ...exempt]) : [],
});

/** Pods of one gateway whose projects are kept apart. */
export interface Projects {
  /** Interface that leads to them. */
  readonly gateway: string;
  /** All networks that pods of the cluster are in, none inside another. */
  readonly networks: readonly Cidr[];
}

/** Clients that reached themselves through a service in the last minute: a pod each, at the most. */
const maxClients = 65_536;

const words = { 4: ["ip", "ipv4_addr"], 6: ["ip6", "ipv6_addr"] } as const;

/**
 * What goes from a pod to the node and back to pods, as by a service of kube-proxy or a host port of portmap, keeps its
 * source: by that the switch knows the project again. Others would hide it behind the node (`--masquerade-all`, node
 * ports, `snat`), where it would pass for the node itself. The kernel asks one chain after the other until one has
 * decided on the source, so this one stands before theirs, and decides that it stays.
 *
 * But who reaches itself has to be hidden, or would hear itself as somebody else's lie. Nftables does not compare two
 * addresses of a packet; it finds the pair of them among those that say the same twice.
 */
export function projectRules({ gateway, networks }: Projects): { readonly sets: string[]; readonly rules: string[] } {
  const families = ([4, 6] as const).filter((family) => networks.some(({ ip }) => ip.family === family));
  const of = (family: Family): string[] =>
    networks
      .filter(({ ip }) => ip.family === family)
      .map((network) => `${formatIp(firstOf(network))}/${network.prefix}`);
  return {
    sets: families.map(
      (family) =>
        `set itself${family} { type ${words[family][1]} . ${words[family][1]}; size ${maxClients}; flags dynamic,timeout; timeout 1m; }`,
    ),
    rules: families.flatMap((family) => {
      const [ip] = words[family];
      const toPods = `oifname "${gateway}" ${ip} saddr { ${of(family).join(", ")} }`;
      const same = of(family).map((network) => `${network} : ${network}`);
      return [
        `${toPods} add @itself${family} { ${ip} saddr . ${ip} saddr }`,
        `${toPods} ${ip} saddr . ${ip} daddr @itself${family} accept`,
        `oifname "${gateway}" snat ${ip} prefix to ${ip} saddr map { ${same.join(", ")} }`,
      ];
    }),
  };
}

/** A network whose pods the node's kernel is to be guarded against. */
export interface GuardedNetwork {
  /** Interface that leads to its pods: whatever comes by it comes from them. */
  readonly bridge: string;
  /** How nodes reach one another's pods, and believe what comes so. Absent: not through a tunnel. */
  readonly tunnel?: TunnelPackets;
}

/** What a tunnel's packets are known by. */
export type TunnelPackets = { readonly protocol: "udp" | "tcp"; readonly port: number } | { readonly protocol: "gre" };

/**
 * As they come from pods, before anything is translated: with the interface's `route_localnet`, which portmap and
 * kube-proxy set, a pod would reach what the node serves to itself alone. Answers to the node's own connections by
 * 127.0.0.1 have another address still.
 */
export const loopbackRules = ({ bridge }: GuardedNetwork): readonly string[] =>
  ([4, 6] as const).flatMap((family) =>
    ["saddr", "daddr"].map((side) => {
      const field = `${family === 4 ? "ip" : "ip6"} ${side}`;
      return `iifname "${bridge}" ${field} ${formatCidr(loopback[family])} drop`;
    }),
  );

/**
 * Forwarded by no router (RFC 4291, 2.5.2 and 2.5.6), but by this kernel: to the first it would ask for each of 2^64
 * addresses that a pod can name, and to the second it would send by whichever route is the default.
 */
export const unforwardedRules = ({ bridge }: GuardedNetwork): readonly string[] =>
  [linkLocal6, unspecified6].map((block) => `iifname "${bridge}" ip6 daddr ${formatCidr(block)} drop`);

/**
 * As they leave for another node or this one, after a service may have translated them: a pod that spoke as a tunnel's
 * end would be believed all that it says.
 */
export const tunnelRules = ({ bridge, tunnel }: GuardedNetwork): readonly string[] =>
  tunnel === undefined ? [] : [`iifname "${bridge}" ${packetsOf(tunnel)} drop`];

const packetsOf = (tunnel: TunnelPackets): string =>
  tunnel.protocol === "gre" ? "meta l4proto gre" : `${tunnel.protocol} dport ${tunnel.port}`;
