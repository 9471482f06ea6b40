import { type Cidr, contains, firstOf, formatIp, type Ip } from "../../../shared/ip.ts";
import { multicast } from "../special-blocks.ts";

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
}

const block = (subnet: Cidr): string => `${formatIp(firstOf(subnet))}/${subnet.prefix}`;

/** nftables refuses a set with a block inside another. */
const minimal = (blocks: readonly Cidr[]): readonly Cidr[] =>
  blocks.filter(
    (one, i) =>
      !blocks.some(
        (other, k) =>
          k !== i && contains(other, one.ip) && (other.prefix < one.prefix || (other.prefix === one.prefix && k < i)),
      ),
  );

/** What leaves the network for anywhere but itself, what is exempt and multicast groups gets the node's address. */
function rule(network: MasqueradedNetwork, subnet: Cidr): string {
  const { family } = subnet.ip;
  const protocol = family === 4 ? "ip" : "ip6";
  const exempt = (network.exempt ?? []).filter(({ ip }) => ip.family === family);
  const kept = minimal([subnet, ...exempt, multicast[family]]).map(block);
  const addresses = `${protocol} saddr ${block(subnet)} ${protocol} daddr != { ${kept.join(", ")} }`;
  return `${addresses} oifname != "${network.bridge}" masquerade`;
}

const hidingRule = ({ bridge }: MasqueradedNetwork, ip: Ip): string =>
  `${ip.family === 4 ? "ip" : "ip6"} saddr ${formatIp(ip)} oifname != "${bridge}" masquerade`;

/** For the first packets of connections on their way out; of subnets, so no pod changes them. */
export const masqueradeRules = (network: MasqueradedNetwork): readonly string[] => [
  ...(network.masquerade ? network.subnets.map((subnet) => rule(network, subnet)) : []),
  ...(network.hidden ?? []).map((ip) => hidingRule(network, ip)),
];
