import { type Cidr, type Family, firstOf, formatIp } from "../../../shared/net/ip.ts";

/** Pods of one gateway whose projects are kept apart. */
export interface Projects {
  /** Interface that leads to them. */
  readonly gateway: string;
  /** All networks that pods of the cluster are in, none inside another. */
  readonly networks: readonly Cidr[];
}

/** Clients that reached themselves through a service in the last minute: a pod each, at the most. */
const mostClients = 65_536;

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
        `set itself${family} { type ${words[family][1]} . ${words[family][1]}; size ${mostClients}; flags dynamic,timeout; timeout 1m; }`,
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
