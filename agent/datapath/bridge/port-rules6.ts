import {
  accept,
  counter,
  drop,
  type Expression,
  type Field,
  hasExtensionHeader,
  type Rule,
  upperProtocol,
} from "../../protocols/netlink/mod.ts";
import {
  destination6,
  dropTheRest,
  fragment6,
  icmp6,
  is,
  isBelow,
  isBetween,
  isNot,
  length6,
  nextHeader,
  type RuleMaker,
  source6,
  sourceMac,
  Upper,
  upperDestinationPort,
  upperType,
} from "./frame-fields.ts";

/**
 * Types of ICMPv6. Types below the first are errors and echo; the others are for neighbours and routers (RFC 4443,
 * 4861, 3810).
 */
const Icmp6 = {
  firstOfNeighbours: 130,
  listeners: [131, 132],
  solicitation: 135,
  advertisement: 136,
  listenersV2: 143,
} as const;
/** Type and length of neighbour discovery options: MACs, and the nonce of a solicitation (RFC 7527). */
const Option = { sourceMac: 0x0101, targetMac: 0x0201, nonce: 0x0e01 } as const;
/** Bytes of a message of neighbour discovery, alone and with one option. Kernels send no others. */
const bare = 24;
const withOption = 32;
/** What a client of DHCPv6 listens on. */
const dhcpClient = 546;

/** ::1 */
const loopback = 1;

const Header = { hopByHop: 0, fragment: 44 } as const;
/**
 * Extension headers behind which the kernel's packet rules cannot look: authentication, mobility, HIP, shim,
 * experiments.
 */
const opaqueHeaders = [51, 135, 139, 140, 253, 254] as const;
/** Headers that may hide a fragment's protocol. Not ESP, whose content only its receiver sees. */
const headersInFragments = [0, 43, 44, 60, ...opaqueHeaders] as const;

type OwnAddress = (mac: Field, address: Field) => readonly Expression[];

/**
 * IPv6 from an address of the pod, or from the unspecified one.
 * @param own whether a MAC with an address is the pod's
 */
export function ipv6Rules(rule: RuleMaker, own: OwnAddress): readonly Rule[] {
  const isUdp = [...is(nextHeader, Upper.udp), ...isNot(upperDestinationPort, dhcpClient)];
  const farUdp = [...is(upperProtocol, Upper.udp), ...isNot(upperDestinationPort, dhcpClient)];
  const farIcmp = is(upperProtocol, Upper.icmp6);
  return [
    rule("pod-ipv6", "nothing for loopback", [...is(destination6, loopback), counter, drop]),
    rule("pod-ipv6", "from no address", is(source6, 0), "pod-unspecified"),
    // The node would forward it with this source.
    rule("pod-ipv6", "to no address", [...is(destination6, 0), counter, drop]),
    rule("pod-ipv6", "TCP", [...is(nextHeader, Upper.tcp), accept]),
    rule("pod-ipv6", "UDP, not as a DHCP server", [...isUdp, accept]),
    rule("pod-ipv6", "ICMPv6", is(nextHeader, Upper.icmp6), "pod-icmpv6"),
    rule("pod-ipv6", "fragments", is(nextHeader, Header.fragment), "pod-fragment"),
    rule("pod-ipv6", "no fragments behind other headers", [...is(hasExtensionHeader(Header.fragment), 1), drop]),
    rule("pod-ipv6", "UDP behind other headers", [...farUdp, accept]),
    rule("pod-ipv6", "ICMPv6 behind other headers", [
      ...farIcmp,
      ...isBelow(upperType, Icmp6.firstOfNeighbours),
      accept,
    ]),
    rule("pod-ipv6", "groups that it listens to", farIcmp, "pod-listener"),
    rule("pod-ipv6", "other protocols", [...isNot(upperProtocol, Upper.udp, Upper.icmp6, ...opaqueHeaders), accept]),
    dropTheRest(rule, "pod-ipv6"),
    ...listenerRules(rule),
    ...discoveryRules(rule, own),
    ...unspecifiedRules(rule, own),
    ...fragmentRules(rule),
  ];
}

/** Multicast listener reports, which have a hop-by-hop header. Queries of routers do not pass. */
function listenerRules(rule: RuleMaker): readonly Rule[] {
  const [first, last] = Icmp6.listeners;
  return [
    rule("pod-listener", "version 1", [...isBetween(upperType, first, last), accept]),
    rule("pod-listener", "version 2", [...is(upperType, Icmp6.listenersV2), accept]),
    dropTheRest(rule, "pod-listener"),
  ];
}

/** Neighbour solicitations with the pod's MAC, and advertisements of its addresses; no router messages. */
function discoveryRules(rule: RuleMaker, own: OwnAddress): readonly Rule[] {
  const asks = is(icmp6.type, Icmp6.solicitation);
  const answers = [...is(icmp6.type, Icmp6.advertisement), ...own(sourceMac, icmp6.target)];
  const tells = (option: number): readonly Expression[] => [...is(length6, withOption), ...is(icmp6.option, option)];
  return [
    rule("pod-icmpv6", "errors and echo", [...isBelow(icmp6.type, Icmp6.firstOfNeighbours), accept]),
    rule("pod-icmpv6", "asks", [...asks, ...is(length6, bare), accept]),
    rule("pod-icmpv6", "asks and tells its MAC", [
      ...asks,
      ...tells(Option.sourceMac),
      ...own(icmp6.optionMac, source6),
      accept,
    ]),
    rule("pod-icmpv6", "answers", [...answers, ...is(length6, bare), accept]),
    rule("pod-icmpv6", "answers and tells its MAC", [
      ...answers,
      ...tells(Option.targetMac),
      ...own(icmp6.optionMac, icmp6.target),
      accept,
    ]),
    dropTheRest(rule, "pod-icmpv6"),
  ];
}

/** From a pod that does not use its address yet. */
function unspecifiedRules(rule: RuleMaker, own: OwnAddress): readonly Rule[] {
  const probes = [
    ...is(nextHeader, Upper.icmp6),
    ...is(icmp6.type, Icmp6.solicitation),
    ...own(sourceMac, icmp6.target),
  ];
  const reports = [
    ...is(nextHeader, Header.hopByHop),
    ...is(hasExtensionHeader(Header.fragment), 0),
    ...is(upperProtocol, Upper.icmp6),
  ];
  return [
    rule("pod-unspecified", "whether somebody else has its address", [...probes, ...is(length6, bare), accept]),
    rule("pod-unspecified", "the same, marked", [
      ...probes,
      ...is(length6, withOption),
      ...is(icmp6.option, Option.nonce),
      accept,
    ]),
    rule("pod-unspecified", "groups that it listens to", reports, "pod-listener"),
    dropTheRest(rule, "pod-unspecified"),
  ];
}

/** Neighbour discovery is never fragmented (RFC 6980). A later fragment is useless without the first. */
function fragmentRules(rule: RuleMaker): readonly Rule[] {
  const { next, offset, icmpType, destinationPort } = fragment6;
  const udp = [...is(next, Upper.udp), ...isNot(destinationPort, dhcpClient)];
  const icmp = [...is(next, Upper.icmp6), ...isBelow(icmpType, Icmp6.firstOfNeighbours)];
  return [
    rule("pod-fragment", "later ones", [...isNot(next, ...headersInFragments), ...isNot(offset, 0), accept]),
    rule("pod-fragment", "UDP, not as a DHCP server", [...udp, accept]),
    rule("pod-fragment", "errors and echo", [...icmp, accept]),
    rule("pod-fragment", "other protocols", [...isNot(next, Upper.udp, Upper.icmp6, ...headersInFragments), accept]),
    dropTheRest(rule, "pod-fragment"),
  ];
}
