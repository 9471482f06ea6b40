import { formatCidr } from "../../../shared/net/ip.ts";
import { linkLocal6, loopback, unspecified6 } from "../addresses.ts";

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
