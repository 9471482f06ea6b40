import type { Family } from "../../../../shared/net/ip.ts";
import { type Flow, type MatchBuilder, match } from "../../../protocols/openflow/mod.ts";
import { loopback } from "../../addresses.ts";
import { Priority, step } from "./build.ts";
import type { PipelineContext } from "./context.ts";
import { familiesOf } from "./families.ts";

/**
 * Drops packets that are never legitimate on the pods' network, from any port: pods, tunnel, uplink or gateway. Hosts
 * that trusted them could be redirected by an attacker.
 */
export const packetGuardFlows = (context: PipelineContext): Flow[] =>
  familiesOf(context)
    .flatMap((family) => refused[family]())
    .map((matched) => step("PacketGuard", Priority.normal, matched, []));

/** ICMP redirects (RFC 792), because only the switch decides about routes. */
const redirect = 5;
/** DHCP's server and client ports (RFC 2131, RFC 8415), since a false server could set clients' address and router. */
const dhcp = { 4: [67, 68], 6: [547, 546] } as const;
/** All of neighbour discovery (RFC 4861); the allowed messages are handled by earlier tables. */
const discovery = [133, 134, 135, 136, 137] as const;
/**
 * Extension headers that the switch does not parse, behind which neighbour discovery or a tunnel's packet would pass
 * the guards: mobility, HIP, shim6, and two for experiments (RFC 7045, 4). No pod uses them. ESP may pass, because only
 * the holder of its key reads its content. 0 means that the switch could not parse the headers to their end.
 */
const unreadHeaders = [0, 135, 139, 140, 253, 254] as const;
/** Value and mask of `ip_frag`. */
const firstFragment = [1, 3] as const;

const refused: Readonly<Record<Family, () => readonly MatchBuilder[]>> = {
  4: () => [
    ...fromOrToLoopback(4),
    match().protocol("icmp").set("icmp_type", redirect),
    match().protocol("udp").set("udp_src", dhcp[4][0]).set("udp_dst", dhcp[4][1]),
  ],
  6: () => [
    ...fromOrToLoopback(6),
    match().protocol("udp6").set("udp_src", dhcp[6][0]).set("udp_dst", dhcp[6][1]),
    ...discovery.map((type) => match().protocol("icmp6").set("icmpv6_type", type)),
    // Drops a first fragment that ends before the ICMPv6 header, so that its type cannot be matched (forbidden by RFC
    // 7112).
    match()
      .protocol("icmp6")
      .set("icmpv6_type", 0)
      .masked("ip_frag", ...firstFragment),
    ...unreadHeaders.map((header) => match().family(6).set("nw_proto", header)),
  ],
};

const fromOrToLoopback = (family: Family): readonly MatchBuilder[] => [
  match()
    .family(family)
    .cidr(family === 4 ? "ip_src" : "ipv6_src", loopback[family]),
  match()
    .family(family)
    .cidr(family === 4 ? "ip_dst" : "ipv6_dst", loopback[family]),
];
