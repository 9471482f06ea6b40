import { etcdMembers, links, routerOn } from "../../../overlay/lab/addresses.ts";
import { address } from "../../../support/frames/frame.ts";
import type { NetworkNamespace } from "../../../support/network-namespace.ts";
import type { Hex } from "../parse.ts";
import type { Prefix, World } from "../world.ts";

export const hexOf = (text: string): Hex => Buffer.from(address(text)).toString("hex");
export const hexOfMac = (text: string): Hex => text.replaceAll(":", "");

/** Of whole digits: "10.10.1.0/24", "fd10::/64". */
export function prefixOf(cidr: string): Prefix {
  const [network = "", bits = ""] = cidr.split("/");
  return { family: network.includes(":") ? 6 : 4, digits: hexOf(network).slice(0, Number(bits) / 4) };
}

export interface InterfaceFacts {
  readonly mac: Hex;
  readonly addresses: readonly Hex[];
  /** Empty where IPv6 is not to be had. */
  readonly linkLocal: Hex;
  readonly subnets: readonly Prefix[];
  readonly mtu: number;
}

/** An interface as its kernel has it. */
export async function factsOf(namespace: NetworkNamespace, ifname: string): Promise<InterfaceFacts> {
  const shown = await namespace.run(`ip -j addr show dev ${ifname}`);
  const [link]: { address: string; mtu: number; addr_info: { local: string; prefixlen: number; scope: string }[] }[] =
    JSON.parse(shown);
  if (link === undefined) throw new Error(`Cannot look at "${ifname}": there is none`);
  const of = (scope: string) => link.addr_info.filter((info) => info.scope === scope);
  return {
    mac: hexOfMac(link.address),
    addresses: of("global").map(({ local }) => hexOf(local)),
    linkLocal: of("link").map(({ local }) => hexOf(local))[0] ?? "",
    subnets: of("global").map(({ local, prefixlen }) => prefixOf(`${local}/${prefixlen}`)),
    mtu: link.mtu,
  };
}

/**
 * From now on a kernel says nothing by itself about what it gets: an answer would bring the attacker's bytes to where
 * the attacker could not. ARP and neighbour discovery go on, as they never carry what they were asked with. What comes
 * to its loopback addresses from elsewhere is counted, behind everybody else's rules.
 */
export async function silence(namespace: NetworkNamespace): Promise<void> {
  const icmp = "echo-reply, destination-unreachable, time-exceeded, parameter-problem, redirect, timestamp-reply";
  const icmp6 = "echo-reply, destination-unreachable, packet-too-big, time-exceeded, parameter-problem, nd-redirect";
  const quiet = `icmp type { ${icmp} } drop; icmpv6 type { ${icmp6} } drop;`;
  const counted = ["ip daddr 127.0.0.0/8", "ip6 daddr ::1"].map(
    (match) => `iifname != "lo" ${match} counter name loopback;`,
  );
  await namespace.run(
    "nft -f -",
    `table inet silent {
      counter loopback { };
      chain out { type filter hook output priority 0; ${quiet} };
      chain in { type filter hook input priority 1000; ${counted.join(" ")} };
    }`,
  );
}

/** How many packets for loopback addresses have come from elsewhere to where services would have heard them. */
export async function loopbackPackets(namespace: NetworkNamespace): Promise<number> {
  const shown = await namespace.run("nft list counter inet silent loopback");
  return Number(/packets (\d+)/.exec(shown)?.[1]);
}

/** As portmap does it with `snat: true`: services of the node's loopback addresses are for everybody to route to. */
export const routeLoopback = (node: NetworkNamespace, gateway: string): void =>
  node.sysctl({ [`ipv4/conf/${gateway}/route_localnet`]: 1 });

/** The router on both links, and the members of the registry. */
export async function othersOn(underlay: NetworkNamespace): Promise<World["others"]> {
  const routers = await Promise.all(
    links.map(async (link) => {
      const { mac } = await factsOf(underlay, `link-${link}`);
      return routerOn(link).map((router) => ({ mac, address: hexOf(router) }));
    }),
  );
  return [...routers.flat(), ...etcdMembers.map((member) => ({ address: hexOf(member) }))];
}
