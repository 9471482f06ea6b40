import type { Family } from "../../../../shared/net/ip.ts";
import { type Flow, type MatchBuilder, match } from "../../../protocols/openflow/mod.ts";
import { loopback } from "../../addresses.ts";
import { Priority, step } from "./build.ts";
import type { PipelineContext } from "./context.ts";
import { familiesOf } from "./families.ts";

/**
 * What nobody says on the pods' network, whoever it is and however it came: from a pod, out of the tunnel, by the uplink
 * or the gateway. Pods and nodes that believed it could be led astray by one another.
 */
export const packetGuardFlows = (context: PipelineContext): Flow[] =>
  familiesOf(context)
    .flatMap((family) => refused[family]())
    .map((matched) => step("PacketGuard", Priority.normal, matched, []));

/** "There is a better way" (RFC 792): the switch alone decides the way. */
const redirect = 5;
/** Of server and client: what tells a client its address and its router (RFC 2131, RFC 8415). */
const dhcp = { 4: [67, 68], 6: [547, 546] } as const;
/** All of neighbour discovery (RFC 4861): what a pod or the node may say of it goes another way. */
const discovery = [133, 134, 135, 136, 137] as const;
/**
 * Headers behind which the switch does not look, so that neighbour discovery or a tunnel's packet would get past its
 * guards: mobility, HIP, shim6, and two for experiments (RFC 7045, 4). No pod uses them; ESP may pass, as what is in it
 * counts for who has its key alone. 0 stands where the switch could not follow the headers to their end.
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
    // A first fragment that ends before the message begins, so that no type is seen: none may be sent (RFC 7112).
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
