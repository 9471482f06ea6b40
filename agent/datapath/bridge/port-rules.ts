import {
  accept,
  among,
  counter,
  drop,
  type Expression,
  type Field,
  inputInterface,
  type PacketSet,
  type Rule,
  type Table,
  upperProtocol,
} from "../../protocols/netlink/mod.ts";
import type { Ruleset } from "../linux/rule-keeper.ts";
import {
  arpHead,
  arpOperation,
  arpSender,
  arpSenderMac,
  arpTarget,
  destinationClass4,
  destinationGroup,
  dropTheRest,
  etherType,
  fragmentOffset4,
  is,
  isBetween,
  isNot,
  type RuleMaker,
  rulesOf,
  source4,
  source6,
  sourceMac,
  Upper,
  upperDestinationPort,
  upperType,
} from "./frame-fields.ts";
import { ipv6Rules } from "./port-rules6.ts";

/** Sets of a bridge's table, whose elements are its pods. */
interface PortSets {
  /** Indexes of pods' ports. A kernel gives none out again before it has counted to two billion. */
  readonly ports: PacketSet;
  /** Triples of port, MAC and address that belong to a pod. */
  readonly pods4: PacketSet;
  readonly pods6: PacketSet;
}

const Ether = { ipv4: 0x0800, arp: 0x0806, ipv6: 0x86dd } as const;
/** ARP's header for Ethernet and IPv4. */
const arpOfIpv4 = 0x0001_0800_0604;
const Arp = { request: 1, reply: 2 } as const;
/** 01:80:c2:00:00:00 to :ff, reserved for protocols between bridges. */
const reservedGroup = 0x0180_c200_00;
/** The port of DHCP clients, to which only servers send. */
const dhcpClient = 68;
/** Messages of routers: of ICMP a redirect and an advertisement, of IGMP a query. */
const Router = { redirect: 5, advertisement: 9, query: 0x11 } as const;

/**
 * 127.0.0.0/8, which with `route_localnet` reaches a host's local services; between ports no other rule of the node
 * sees it.
 */
const loopbackClass = 127;

/** Before all other hooks, `br_netfilter` included. */
const priority = -300;

/**
 * What pods may send into their bridge: packets from their own MACs and addresses, and ARP and neighbour discovery
 * about these. The rules name what may pass, so that a frame which they cannot read is dropped like any other; they
 * stay the same whatever pods there are. Ports outside of `ports` belong to others, or to an older agent without such
 * rules.
 */
export function portRuleset(bridge: string): { readonly ruleset: Ruleset; readonly sets: PortSets } {
  const table: Table = { family: "bridge", name: `pipette-${bridge}` };
  const sets: PortSets = {
    ports: { table, name: "ports", key: ["ifindex"] },
    pods4: { table, name: "pods4", key: ["ifindex", "mac", "ipv4"] },
    pods6: { table, name: "pods6", key: ["ifindex", "mac", "ipv6"] },
  };
  const rule = rulesOf(table);
  const own6 = (mac: Field, address: Field): readonly Expression[] =>
    among(sets.pods6.name, inputInterface, mac, address);
  return {
    sets,
    ruleset: {
      table,
      sets: [sets.pods4, sets.pods6, sets.ports],
      // NF_BR_PRE_ROUTING: the bridge learns and forwards behind it.
      hooks: new Map([["prerouting", { number: 0, priority }]]),
      rules: [...frameRules(rule, sets, own6), ...arpRules(rule, sets), ...ipv4Rules(rule), ...ipv6Rules(rule, own6)],
    },
  };
}

function frameRules(
  rule: RuleMaker,
  { ports, pods4 }: PortSets,
  own6: (mac: Field, address: Field) => readonly Expression[],
): readonly Rule[] {
  const fromOwn4 = [...is(etherType, Ether.ipv4), ...among(pods4.name, inputInterface, sourceMac, source4)];
  return [
    rule("prerouting", "pods", among(ports.name, inputInterface), "pod"),
    rule("pod", "no BPDUs, no LLDP", [...is(destinationGroup, reservedGroup), counter, drop]),
    rule("pod", "its MAC and IPv4 address", fromOwn4, "pod-ipv4"),
    rule(
      "pod",
      "its MAC and an IPv6 address of it",
      [...is(etherType, Ether.ipv6), ...own6(sourceMac, source6)],
      "pod-ipv6",
    ),
    rule("pod", "ARP", [...is(etherType, Ether.arp), ...is(arpHead, arpOfIpv4)], "pod-arp"),
    dropTheRest(rule, "pod"),
  ];
}

function arpRules(rule: RuleMaker, { pods4 }: PortSets): readonly Rule[] {
  const ownMacsWith = (address: Field): readonly Expression[] => [
    ...among(pods4.name, inputInterface, sourceMac, address),
    ...among(pods4.name, inputInterface, arpSenderMac, address),
  ];
  const speaks = [...isBetween(arpOperation, Arp.request, Arp.reply), ...ownMacsWith(arpSender)];
  const probes = [...is(arpOperation, Arp.request), ...is(arpSender, 0), ...ownMacsWith(arpTarget)];
  return [
    rule("pod-arp", "about itself", [...speaks, accept]),
    rule("pod-arp", "whether somebody else has its address", [...probes, accept]),
    dropTheRest(rule, "pod-arp"),
  ];
}

function ipv4Rules(rule: RuleMaker): readonly Rule[] {
  const udp = [...is(upperProtocol, Upper.udp), ...isNot(upperDestinationPort, dhcpClient)];
  const icmp = [...is(upperProtocol, Upper.icmp4), ...isNot(upperType, Router.redirect, Router.advertisement)];
  const igmp = [...is(upperProtocol, Upper.igmp), ...isNot(upperType, Router.query)];
  return [
    rule("pod-ipv4", "nothing for loopback", [...is(destinationClass4, loopbackClass), counter, drop]),
    rule("pod-ipv4", "TCP", [...is(upperProtocol, Upper.tcp), accept]),
    // Later fragments are useless without the first one.
    rule("pod-ipv4", "later fragments", [...isNot(fragmentOffset4, 0), accept]),
    rule("pod-ipv4", "UDP, not as a DHCP server", [...udp, accept]),
    rule("pod-ipv4", "ICMP, not as a router", [...icmp, accept]),
    rule("pod-ipv4", "IGMP, not as a router", [...igmp, accept]),
    rule("pod-ipv4", "other protocols", [...isNot(upperProtocol, Upper.udp, Upper.icmp4, Upper.igmp), accept]),
    dropTheRest(rule, "pod-ipv4"),
  ];
}
