import { type Cidr, contains, type Family, firstOf, formatCidr, formatIp, type Ip } from "../../../shared/net/ip.ts";
import { linkLocal6, loopback, multicast, unspecified6 } from "../addresses.ts";

/** A network whose pods may be hidden behind the node. */
export interface MasqueradedNetwork {
  /** Interface that leads to its pods. */
  readonly bridge: string;
  readonly subnets: readonly Cidr[];
  readonly masquerade: boolean;
  /** Destinations that its pods reach under their own addresses, beside their own subnets. */
  readonly exempt?: readonly Cidr[];
  /** Addresses that are valid only on this node, which are always masqueraded. */
  readonly nodeLocal?: readonly Ip[];
  /** Projects are isolated: packets between pods that pass the node keep their source. */
  readonly multitenant?: boolean;
}

const block = (subnet: Cidr): string => `${formatIp(firstOf(subnet))}/${subnet.prefix}`;

/** Drops blocks inside of others, which nftables refuses in a set. Sorted first, since there may be thousands. */
export function minimal(blocks: readonly Cidr[]): readonly Cidr[] {
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

/** Matches packets that leave the network, except to exempt destinations and multicast groups. */
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

/** Matches packets to masquerade, by subnet, so the rules do not depend on pods. */
const packetsToMasquerade = (network: MasqueradedNetwork): readonly string[] => [
  ...(network.masquerade ? network.subnets.map((subnet) => packetsLeaving(network, subnet)) : []),
  ...(network.nodeLocal ?? []).map((ip) => leavingHidden(network, ip)),
];

/** For the first packets of connections on their way out. */
export const masqueradeRules = (network: MasqueradedNetwork): readonly string[] =>
  packetsToMasquerade(network).map((packets) => `${packets} masquerade`);

/**
 * For packets that still have a pod's address after masquerading: without a tracked connection (a stray reset), or of a
 * protocol without translation. Replies to clients that reached the pod under its own address are excepted.
 */
export function unmasqueradedRules(network: MasqueradedNetwork): readonly string[] {
  const packets = packetsToMasquerade(network);
  return packets.length === 0 ? [] : ["ct direction reply accept", ...packets.map((each) => `${each} drop`)];
}

/** The projects of a network; none if projects are not isolated. */
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

/** Pods that reached themselves through a service in the last minute. */
const maxClients = 65_536;

const words = { 4: ["ip", "ipv4_addr"], 6: ["ip6", "ipv6_addr"] } as const;
/** In the order of their numbers. */
const bothFamilies = [4, 6] as const;

/**
 * Packets from a pod through the node to a pod, as by a service of kube-proxy or a host port of portmap, keep their
 * source, by which the switch recognises the project. Other rules would masquerade them (`--masquerade-all`, node
 * ports, `snat`), so that they seem to come from the node. The first chain that decides about the source wins, so this
 * one precedes theirs.
 *
 * But a pod that reaches itself through a service has to be masqueraded, since it would drop packets with its own
 * source address. Nftables cannot compare two addresses of a packet, so the pair is looked up in a set of pairs of
 * equal addresses.
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

/** A network whose pods the node's kernel is protected against. */
export interface GuardedNetwork {
  /** Interface that leads to its pods: all packets from it come from pods. */
  readonly bridge: string;
  /** The tunnel between nodes, whose packets are trusted. Absent: there is none. */
  readonly tunnel?: TunnelPackets;
}

/** Protocol and port of a tunnel's packets. */
export type TunnelPackets = { readonly protocol: "udp" | "tcp"; readonly port: number } | { readonly protocol: "gre" };

/**
 * Drops pods' packets to 127.0.0.0/8 before translation: with `route_localnet`, which portmap and kube-proxy set, a pod
 * would reach the node's local services. Replies to the node's own connections by 127.0.0.1 still have another
 * destination here.
 */
export const loopbackRules = ({ bridge }: GuardedNetwork): readonly string[] =>
  ([4, 6] as const).flatMap((family) =>
    ["saddr", "daddr"].map((side) => {
      const field = `${family === 4 ? "ip" : "ip6"} ${side}`;
      return `iifname "${bridge}" ${field} ${formatCidr(loopback[family])} drop`;
    }),
  );

/**
 * Drops destinations that no router forwards (RFC 4291, 2.5.2 and 2.5.6) but this kernel would: for link-local ones it
 * would solicit each of 2^64 addresses that a pod names, and the unspecified one would take the default route.
 */
export const unforwardedRules = ({ bridge }: GuardedNetwork): readonly string[] =>
  [linkLocal6, unspecified6].map((block) => `iifname "${bridge}" ip6 daddr ${formatCidr(block)} drop`);

/**
 * Drops pods' packets to tunnel ports of any node, after translation: a pod that posed as a tunnel's end would be
 * trusted with every source address.
 */
export const tunnelRules = ({ bridge, tunnel }: GuardedNetwork): readonly string[] =>
  tunnel === undefined ? [] : [`iifname "${bridge}" ${tunnelMatch(tunnel)} drop`];

/** The outer packets, as nftables matches them. */
export const tunnelMatch = (tunnel: TunnelPackets): string =>
  tunnel.protocol === "gre" ? "meta l4proto gre" : `${tunnel.protocol} dport ${tunnel.port}`;

/** Services that a switch balances, also for the node itself and for others. */
export interface SwitchedServices {
  /** The interface that leads to the switch. */
  readonly bridge: string;
  /** For packets for node ports, so that they are routed to the switch. */
  readonly virtual: Readonly<Record<Family, Ip>>;
  /** The next hop of the routes to services. */
  readonly nextHop: Readonly<Record<Family, Ip>>;
  /** Blocks of the node's addresses at which node ports answer; none: all but loopback. */
  readonly nodePortAddresses: readonly Cidr[];
}

/**
 * The sets whose elements change with services: node ports by protocol and port, and where nobody is to answer, by
 * address, protocol and port.
 */
export const serviceSets: readonly string[] = bothFamilies.flatMap((family) => [
  `set node-ports${family} { type inet_proto . inet_service; }`,
  `set refused${family} { type ${words[family][1]} . inet_proto . inet_service; }`,
]);

/** What is for the node's own address and a node port is for the switch, which the kernel would keep otherwise. */
export const nodePortRules = (services: SwitchedServices): readonly string[] =>
  bothFamilies.flatMap((family) => {
    const [ip] = words[family];
    const blocks = minimal(services.nodePortAddresses.filter((one) => one.ip.family === family)).map(block);
    if (services.nodePortAddresses.length > 0 && blocks.length === 0) return [];
    const where = blocks.length > 0 ? ` ${ip} daddr { ${blocks.join(", ")} }` : "";
    const own = `${ip} daddr != ${formatCidr(loopback[family])}${where} fib daddr type local`;
    const target = formatIp(services.virtual[family]);
    return [`${own} meta l4proto . th dport @node-ports${family} dnat ${ip} to ${target}`];
  });

/** The node asks itself by its own address, which the switch would take for somebody else's. */
export const ownSourceRules = ({ bridge, virtual }: SwitchedServices): readonly string[] =>
  bothFamilies.map((family) => {
    const [ip] = words[family];
    return `oifname "${bridge}" ${ip} daddr ${formatIp(virtual[family])} fib saddr type local masquerade`;
  });

/**
 * Tells clients at once that nobody is going to answer. What the switch gives to the kernel for a service is to be
 * refused in any case: back in the switch it would be a connection of its own, with the same addresses and ports.
 */
export const refusedRules = ({ bridge, virtual, nextHop }: SwitchedServices): readonly string[] =>
  bothFamilies.flatMap((family) => {
    const [ip] = words[family];
    const fromSwitch = `iifname "${bridge}" ${ip} daddr != ${formatIp(virtual[family])}`;
    return [
      `${ip} daddr . meta l4proto . th dport @refused${family}`,
      `${fromSwitch} rt ${ip} nexthop ${formatIp(nextHop[family])}`,
    ].flatMap((nobody) => [
      `${nobody} meta l4proto tcp reject with tcp reset`,
      `${nobody} reject with icmpx type port-unreachable`,
    ]);
  });
