import { formatIp, type Ip, ipOf } from "../../../../shared/ip.ts";
import { type Action, type Flow, type MatchBuilder, match, output, setField } from "../../../openflow/mod.ts";
import { Priority, step } from "./build.ts";
import type { PipelineContext } from "./context.ts";
import { familiesOf } from "./families.ts";

/** A port and who is behind it. */
export interface Neighbour {
  readonly ofport: number;
  readonly mac: string;
  readonly ips: readonly Ip[];
}

/** Types of neighbour discovery: router solicitation and advertisement, neighbour likewise, redirect (RFC 4861). */
const solicitation = 135;
const advertisement = 136;
const discovery = [133, 134, solicitation, advertisement, 137] as const;
const noMac = "00:00:00:00:00:00";

/** The address that an interface makes itself of its MAC (RFC 4291, appendix A). */
export function linkLocalOf(mac: string): Ip {
  const [a = 0n, b = 0n, c = 0n, d = 0n, e = 0n, f = 0n] = mac.split(":").map((pair) => BigInt(`0x${pair}`));
  const octets = [a ^ 2n, b, c, 0xffn, 0xfen, d, e, f];
  return ipOf(
    6,
    octets.reduce((sum, octet) => (sum << 8n) | octet, 0xfe80n << 48n),
  );
}

/**
 * ARP about an address goes to its holder alone, requests and replies alike: nothing is flooded, so nothing gets to the
 * uplink. A request to the MAC of an earlier holder is answered too.
 */
export const arpTo = (ip: Ip, mac: string, ofport: number): Flow[] =>
  ip.family === 4
    ? [step("ARPResponder", Priority.low, match().protocol("arp").set("arp_tpa", ip), deliver(mac, ofport))]
    : [];

/** The same with IPv6: solicitations by their target, advertisements by the MAC that they are sent to. */
export function neighboursOf({ ofport, mac, ips }: Neighbour): Flow[] {
  const own = discoveredOf(mac, ips);
  if (own.length === 0) return [];
  return [
    ...own.map((ip) => step("IPv6", Priority.normal, ofType(solicitation).set("nd_target", ip), deliver(mac, ofport))),
    step("IPv6", Priority.normal, ofType(advertisement).set("eth_dst", mac), deliver(mac, ofport)),
  ];
}

/** What a pod may say in neighbour discovery: that its own addresses are at its own MAC. */
export function neighbourSpoofFlows({ ofport, mac, ips }: Neighbour): Flow[] {
  const own = discoveredOf(mac, ips);
  const from = (type: number, ip: Ip): MatchBuilder =>
    // Whole: what is in a later fragment is not seen here (RFC 6980).
    ofType(type).masked("ip_frag", 0, 3).set("in_port", ofport).set("eth_src", mac).set("ipv6_src", ip);
  const allow = (matched: MatchBuilder): Flow => step("SpoofGuard", Priority.high, matched, [], "IPv6");
  return own.flatMap((ip) => [
    allow(from(solicitation, ip).set("nd_sll", mac)),
    allow(from(advertisement, ip).set("nd_target", ip).set("nd_tll", mac)),
    // The answer to a question that was sent to this MAC need not say it again.
    allow(from(advertisement, ip).set("nd_target", ip).set("nd_tll", noMac)),
  ]);
}

/** Nobody else may speak neighbour discovery, least of all pass for a router; and none of it is a connection. */
export function neighbourGuardFlows(context: PipelineContext): Flow[] {
  if (!familiesOf(context).includes(6)) return [];
  const { ofport, mac } = context.gateway;
  // Where another CNI plugin routes, the node answers for what is elsewhere, if it likes.
  const toNode = context.mode === "networkPolicyOnly" ? deliver(mac, ofport) : [];
  return [
    ...[solicitation, advertisement].flatMap((type) => [
      step("SpoofGuard", Priority.high, ofType(type).set("in_port", ofport), [], "IPv6"),
      step("IPv6", Priority.low, ofType(type), type === solicitation ? toNode : []),
    ]),
    ...discovery.map((type) => step("SpoofGuard", Priority.guard, ofType(type), [])),
  ];
}

/** The addresses that are asked for: IPv6 ones, and with them the link-local one, from which kernels ask. */
function discoveredOf(mac: string, ips: readonly Ip[]): readonly Ip[] {
  const own = ips.filter(({ family }) => family === 6);
  if (own.length === 0) return [];
  const all = [...own, linkLocalOf(mac)];
  return [...new Map(all.map((ip) => [formatIp(ip), ip])).values()];
}

const ofType = (type: number): MatchBuilder => match().protocol("icmp6").set("icmpv6_type", type);

const deliver = (mac: string, ofport: number): readonly Action[] => [setField("eth_dst", mac), output(ofport)];
