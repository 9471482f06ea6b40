import { formatIp, type Ip, ipOf } from "../../../../shared/net/ip.ts";
import { type Flow, type MatchBuilder, match } from "../../../protocols/openflow/mod.ts";
import { linkLocalOf } from "../../addresses.ts";
import { answerArp } from "./arp-answer.ts";
import { Priority, step } from "./build.ts";
import type { PipelineContext } from "./context.ts";
import {
  advertisement,
  answerSolicitation,
  discovery,
  finishAnswer,
  type Holder,
  solicitation,
  virtualHolder,
} from "./discovery-answer.ts";
import { familiesOf } from "./families.ts";

/** A port, and the MAC and addresses behind it. */
export interface Neighbour {
  readonly ofport: number;
  readonly mac: string;
  readonly ips: readonly Ip[];
}

/**
 * The switch answers ARP and solicitations for this node's addresses in place of their holders. So nothing from one pod
 * reaches another that way: no hidden data, and no forged MAC.
 */
export function answersFor({ mac, ips }: Neighbour, role: "pod" | "router"): Flow[] {
  const holder: Holder = { mac, isRouter: role === "router" };
  return [
    ...ips
      .filter(({ family }) => family === 4)
      .map((ip) => step("ARPResponder", Priority.low, arpRequest().set("arp_tpa", ip), answerArp(ip, mac))),
    ...discoveredOf(mac, ips).map((ip) =>
      step("IPv6", Priority.normal, ofType(solicitation).set("nd_target", ip), answerSolicitation(holder)),
    ),
  ];
}

/** A holder that announces or probes its own address must get no answer. */
export const noAnswerToHolder = ({ ofport, mac, ips }: Neighbour): Flow[] => [
  ...ips
    .filter(({ family }) => family === 4)
    .map((ip) => step("ARPResponder", Priority.high, arpRequest().set("in_port", ofport).set("arp_tpa", ip), [])),
  ...discoveredOf(mac, ips).map((ip) =>
    step("IPv6", Priority.high, ofType(solicitation).set("in_port", ofport).set("nd_target", ip), []),
  ),
];

/** A pod may only send solicitations of its own. */
export const neighbourSpoofFlows = ({ ofport, mac, ips }: Neighbour): Flow[] =>
  discoveredOf(mac, ips).map((ip) => {
    // Only unfragmented ones, since later fragments cannot be inspected here (RFC 6980).
    const whole = ofType(solicitation).masked("ip_frag", 0, 3);
    const own = whole.set("in_port", ofport).set("eth_src", mac).set("ipv6_src", ip).set("nd_sll", mac);
    return step("SpoofGuard", Priority.high, own, [], "IPv6");
  });

/** Drops all other neighbour discovery, router messages included; it is not tracked as connections. */
export function neighbourGuardFlows(context: PipelineContext): Flow[] {
  if (!familiesOf(context).includes(6)) return [];
  const fromNode = ofType(solicitation).set("in_port", context.gateway.ofport);
  // If another CNI plugin routes, every address is answered with the virtual MAC, as for ARP.
  const elsewhere = context.mode === "networkPolicyOnly" ? answerSolicitation(virtualHolder) : [];
  return [
    step("SpoofGuard", Priority.high, fromNode, [], "IPv6"),
    ...discovery.map((type) => step("SpoofGuard", Priority.guard, ofType(type), [])),
    // The node's kernel probes an address (DAD), which must not be answered.
    step("IPv6", Priority.high, ofType(solicitation).set("ipv6_src", unspecified), []),
    step("IPv6", Priority.low, ofType(solicitation), elsewhere),
    step("IPv6", Priority.normal, ofType(advertisement), finishAnswer),
  ];
}

/** The IPv6 addresses that may be solicited, with the link-local one, from which kernels send. */
function discoveredOf(mac: string, ips: readonly Ip[]): readonly Ip[] {
  const own = ips.filter(({ family }) => family === 6);
  if (own.length === 0) return [];
  const all = [...own, linkLocalOf(mac)];
  return [...new Map(all.map((ip) => [formatIp(ip), ip])).values()];
}

const unspecified = ipOf(6, 0n);

const arpRequest = (): MatchBuilder => match().protocol("arp").set("arp_op", 1);

const ofType = (type: number): MatchBuilder => match().protocol("icmp6").set("icmpv6_type", type);
