import {
  accept,
  among,
  compare,
  connectionFields,
  counter,
  drop,
  type Expression,
  type Hook,
  inputInterface,
  isOfNoConnection,
  jumpBy,
  jumpTo,
  masked,
  networkFamily,
  outputInterface,
  outputInterfaceName,
  type PacketSet,
  payload,
  type Rule,
  sendToNode,
  sourceKind,
  type Table,
  upperProtocol,
} from "../../../protocols/netlink/mod.ts";
import {
  destination6,
  etherType,
  icmp6,
  is,
  isBetween,
  isNot,
  nextHeader,
  rulesOf,
  source4,
  source6,
  Upper,
  upperType,
} from "../frame-fields.ts";
import { portRuleset } from "../port-rules.ts";
import type { FilledChain } from "./packet-program.ts";

/** A bridge of pods. */
export interface PolicedBridge {
  readonly name: string;
  readonly mac: Uint8Array;
}

/** The sets by which packets find the rules of their pods. */
export interface PodMaps {
  /** From a pod's address to the chain of what it may send. */
  readonly from: Readonly<Record<4 | 6, PacketSet>>;
  /** The same of what it may receive. */
  readonly to: Readonly<Record<4 | 6, PacketSet>>;
  /** Pairs of addresses of one pod. */
  readonly itself: Readonly<Record<4 | 6, PacketSet>>;
}

/** The ports of isolated pods at one bridge. */
export interface ClosedPorts {
  readonly from: PacketSet;
  readonly to: PacketSet;
}

const families = { 4: "ipv4", 6: "ipv6" } as const;
const both = <T>(make: (family: 4 | 6) => T): Readonly<Record<4 | 6, T>> => ({ 4: make(4), 6: make(6) });

export function podMaps(table: Table): PodMaps {
  const map = (name: string) =>
    both((family): PacketSet => ({ table, name: `${name}${family}`, key: [families[family]], leadsToChains: true }));
  return {
    from: map("from"),
    to: map("to"),
    itself: both((family) => ({ table, name: `itself${family}`, key: [families[family], families[family]] })),
  };
}

/** In the table of the bridge's port rules. */
export function closedPorts(bridge: string): ClosedPorts {
  const { table } = portRuleset(bridge).ruleset;
  return {
    from: { table, name: "closed-from", key: ["ifindex"] },
    to: { table, name: "closed-to", key: ["ifindex"] },
  };
}

/** Behind all translation; IPVS takes its packets out of the input hook before, and sends them as the node's own. */
const behindTranslation = 110;
/** NF_INET_LOCAL_IN, NF_INET_FORWARD, NF_INET_LOCAL_OUT */
const hooks = { input: 1, forward: 2, output: 3 } as const;
const hookOf = (hook: keyof typeof hooks, later = 0): Hook => ({
  number: hooks[hook],
  priority: behindTranslation + later,
});

/** RTN_LOCAL, in the machine's byte order. */
const localAddress = new Uint8Array(Uint32Array.of(2).buffer);

const { source4: from4, source6: from6, destination4: to4, destination6: to6 } = connectionFields;
const family = (number: number): readonly Expression[] => compare(networkFamily, "eq", Uint8Array.of(number));
const packets4 = family(2);
const packets6 = family(10);
const destination4 = payload("network", 16, 4);

/** Neighbour discovery (RFC 4861), and reports of groups by which bridges learn who listens (RFC 2710, 3810). */
const neighbours: readonly (readonly Expression[])[] = [
  [...is(upperProtocol, Upper.icmp6), ...isBetween(upperType, 130, 137)],
  [...is(upperProtocol, Upper.icmp6), ...is(upperType, 143)],
];

/**
 * The chains that lead packets to the rules of their pods, first of whoever has opened the connection, then of whom it
 * leads to. Each packet is judged by its connection, whichever way it goes: so an answer passes as long as a question
 * would, and a change of policies reaches connections that are open.
 */
export function judgingChains(table: Table, { from, to, itself }: PodMaps): readonly FilledChain[] {
  const rule = rulesOf(table);
  const chain = (name: string, hook: Hook | undefined, rules: readonly Rule[]): FilledChain => ({
    table,
    name,
    ...(hook === undefined ? {} : { hook }),
    text: "",
    rules: () => rules,
  });
  const exempt = (chain: string): readonly Rule[] => [
    ...neighbours.map((messages) => rule(chain, "neighbours", [...messages, accept])),
    rule(chain, "a pod and itself", [...among(itself[4].name, from4, to4), accept]),
    rule(chain, "a pod and itself", [...among(itself[6].name, from6, to6), accept]),
  ];
  const base = (name: string, hook: Hook, chainOf: "egress" | "ingress", ...before: readonly Rule[]): FilledChain =>
    chain(name, hook, [...before, rule(name, chainOf, [jumpTo(chainOf)])]);
  return [
    chain("egress", undefined, [
      ...exempt("egress"),
      rule("egress", "connections from pods", jumpBy(from[4].name, from4)),
      rule("egress", "connections from pods", jumpBy(from[6].name, from6)),
      rule("egress", "of no connection", [...isOfNoConnection, ...packets4, ...jumpBy(from[4].name, source4)]),
      rule("egress", "of no connection", [...isOfNoConnection, ...packets6, ...jumpBy(from[6].name, source6)]),
    ]),
    chain("ingress", undefined, [
      ...exempt("ingress"),
      rule("ingress", "connections to pods", jumpBy(to[4].name, to4)),
      rule("ingress", "connections to pods", jumpBy(to[6].name, to6)),
      rule("ingress", "of no connection", [...isOfNoConnection, ...packets4, ...jumpBy(to[4].name, destination4)]),
      rule("ingress", "of no connection", [...isOfNoConnection, ...packets6, ...jumpBy(to[6].name, destination6)]),
    ]),
    base("forward-egress", hookOf("forward"), "egress"),
    base("forward-ingress", hookOf("forward", 1), "ingress"),
    base("input-egress", hookOf("input"), "egress"),
    base("output-egress", hookOf("output"), "egress"),
    base(
      "output-ingress",
      hookOf("output", 1),
      "ingress",
      rule("output-ingress", "the node's own", [...compare(sourceKind, "eq", localAddress), accept]),
    ),
  ];
}

/** Without them pods would send straight to each other what the node has sent back by the bridge that it came from. */
export function noRedirects(table: Table, bridges: readonly PolicedBridge[]): FilledChain {
  const [name, rule] = ["redirects", rulesOf(table)];
  const rules = bridges.flatMap((bridge) => {
    const out = compare(outputInterfaceName, "eq", ifnameBytes(bridge.name));
    return [
      rule(name, bridge.name, [...out, ...packets4, ...is(upperProtocol, Upper.icmp4), ...is(upperType, 5), drop]),
      rule(name, bridge.name, [...out, ...packets6, ...is(upperProtocol, Upper.icmp6), ...is(upperType, 137), drop]),
    ];
  });
  return { table, name, hook: hookOf("output"), text: bridges.map(({ name }) => name).join(), rules: () => rules };
}

export function ifnameBytes(name: string): Uint8Array {
  const bytes = new Uint8Array(outputInterfaceName.bytes);
  new TextEncoder().encodeInto(name, bytes);
  return bytes;
}

/** Behind the port rules, before `br_netfilter`. */
const behindPortRules = -200;
/** NF_BR_PRE_ROUTING, NF_BR_FORWARD */
const bridgeHooks = { prerouting: 0, forward: 2 } as const;
const Ether = { ipv4: 0x0800, arp: 0x0806, ipv6: 0x86dd } as const;
const destinationMac = payload("link", 0, 6);
const groupBit = masked(payload("link", 0, 1), Uint8Array.of(0x01));
/** fe80::/10: what is sent there is never routed. */
const linkLocal6 = masked(payload("network", 24, 2), Uint8Array.of(0xff, 0xc0));

const fromPods = (bridge: string): readonly Expression[] => among(portRuleset(bridge).sets.ports.name, inputInterface);
const routed4 = (bridge: string): readonly Expression[] => [...is(etherType, Ether.ipv4), ...fromPods(bridge)];
const routed6 = (bridge: string): readonly Expression[] => [
  ...is(etherType, Ether.ipv6),
  ...isNot(linkLocal6, 0xfe80),
  ...fromPods(bridge),
];

/**
 * At a bridge: packets between its pods are handed to the node, since few kernels track connections in a bridge. The
 * node tells of each who has opened it, and translates its answers.
 * @param route name of the chain, in the table of the bridge's port rules
 */
export function routedByNode({ name: bridge, mac }: PolicedBridge, route: string): FilledChain {
  const { table } = portRuleset(bridge).ruleset;
  const rule = rulesOf(table);
  const toAnother = [...is(groupBit, 0), ...compare(destinationMac, "neq", mac)];
  const discovery = [...is(nextHeader, Upper.icmp6), ...isBetween(icmp6.type, 130, 137)];
  const rules = [
    rule(route, "IPv4 between pods", [...routed4(bridge), ...toAnother, ...sendToNode(mac)]),
    rule(route, "neighbour discovery", [...is(etherType, Ether.ipv6), ...discovery, accept]),
    rule(route, "IPv6 between pods", [...routed6(bridge), ...toAnother, ...sendToNode(mac)]),
  ];
  return {
    table,
    name: route,
    hook: { number: bridgeHooks.prerouting, priority: behindPortRules },
    text: mac.toHex(),
    rules: () => rules,
  };
}

/** What cannot be routed stays at the bridge (groups, link-local addresses), and is no matter of rules: isolated pods are kept from it. */
export function bridgeChains(policed: PolicedBridge, closed: ClosedPorts): readonly FilledChain[] {
  const { name: bridge } = policed;
  const { table } = portRuleset(bridge).ruleset;
  const rule = rulesOf(table);
  const stay = "policies-stay";
  const staying = [
    rule(stay, "ARP", [...is(etherType, Ether.arp), accept]),
    ...neighbours.map((messages) => rule(stay, "neighbours", [...is(etherType, Ether.ipv6), ...messages, accept])),
    // `br_netfilter` sends packets for services on by itself, and has them judged by the node's rules before.
    rule(stay, "IPv4 for services", [...routed4(bridge), ...is(groupBit, 0), accept]),
    rule(stay, "IPv6 for services", [...routed6(bridge), ...is(groupBit, 0), accept]),
    rule(stay, "from isolated pods", [...among(closed.from.name, inputInterface), counter, drop]),
    rule(stay, "to isolated pods", [...among(closed.to.name, outputInterface), counter, drop]),
  ];
  return [
    routedByNode(policed, "policies-route"),
    { table, name: stay, hook: { number: bridgeHooks.forward, priority: 0 }, text: "", rules: () => staying },
  ];
}
