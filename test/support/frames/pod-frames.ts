import {
  address,
  arp,
  bytes,
  type Ends,
  EtherType,
  ethernet,
  icmp6,
  ipv4,
  ipv6,
  mac,
  type Part,
  Protocol,
  tagged,
  u16,
  udp,
} from "./frame.ts";

/** Whom frames name. */
export interface Party {
  readonly mac: string;
  readonly ip4: string;
  readonly ip6: string;
  readonly linkLocal: string;
}

export type Frame = readonly [name: string, frame: Uint8Array];

const broadcast = "ff:ff:ff:ff:ff:ff";
const allNodes = { mac: "33:33:00:00:00:01", ip: "ff02::1" };
const stranger = "02:00:00:00:00:99";

const icmpRedirect = [5, 1, 0, 0];
/** Extension headers of eight bytes; `next` is the number of what follows. */
const options = (next: number): readonly number[] => [next, 0, 1, 4, 0, 0, 0, 0];
const routing = (next: number): readonly number[] => [next, 0, 0, 0, 0, 0, 0, 0];
const fragment = (next: number, offset = 0, more = 0): readonly number[] => [
  next,
  0,
  ...u16((offset << 3) | more),
  0,
  0,
  0,
  7,
];
/** Mobility, HIP, shim: header, next and length in the same place. */
const mobility = (next: number): readonly number[] => [next, 0, 0, 0, 0, 0, 0, 0];

const linkOption = (kind: 1 | 2, lladdr: string): Part => bytes([kind, 1], mac(lladdr));
const discovery = (ends: Ends, type: 135 | 136, target: string, ...parts: readonly Part[]): Uint8Array =>
  icmp6(ends, type, bytes(type === 136 ? [0x60, 0, 0, 0] : [0, 0, 0, 0], address(target), ...parts));
const solicitedNode = (target: string): string => `ff02::1:ff${target.slice(-2).padStart(2, "0")}`;

/** ARP that a pod must not send. */
export function forgedArp(pod: Party, victim: Party, gateway: Party): readonly Frame[] {
  const own = { from: pod.mac, to: victim.mac };
  const says = (from: string, senderMac: string, sender: string, operation: 1 | 2, to = victim.mac) =>
    ethernet({ from, to }, EtherType.arp, arp({ operation, senderMac, sender, target: victim.ip4 }));
  const plain = arp({ operation: 2, senderMac: pod.mac, sender: pod.ip4, target: victim.ip4 });
  return [
    ["a reply for the gateway", says(pod.mac, pod.mac, gateway.ip4, 2)],
    ["a request from the gateway's address", says(pod.mac, pod.mac, gateway.ip4, 1, broadcast)],
    ["a gratuitous reply for the victim", says(pod.mac, pod.mac, victim.ip4, 2, broadcast)],
    ["its own address at another MAC", says(pod.mac, stranger, pod.ip4, 2)],
    ["its own address, from another MAC", says(stranger, pod.mac, pod.ip4, 2)],
    ["all of it from the gateway's MAC", says(gateway.mac, gateway.mac, gateway.ip4, 2)],
    [
      "a probe of another's address",
      ethernet(own, EtherType.arp, arp({ operation: 1, senderMac: pod.mac, sender: "0.0.0.0", target: gateway.ip4 })),
    ],
    ["a reply from nowhere", says(pod.mac, pod.mac, "0.0.0.0", 2)],
    ["another operation (InARP)", ethernet(own, EtherType.arp, bytes(plain.subarray(0, 6), u16(8), plain.subarray(8)))],
    ["another operation (RARP)", ethernet(own, EtherType.arp, bytes(plain.subarray(0, 6), u16(3), plain.subarray(8)))],
    ["for another kind of hardware", ethernet(own, EtherType.arp, bytes(u16(6), plain.subarray(2)))],
    ["cut short", ethernet(own, EtherType.arp, plain.subarray(0, 10))],
  ];
}

/** IPv4 and frames of other kinds that a pod must not send. */
export function forgedPackets(pod: Party, victim: Party, gateway: Party): readonly Frame[] {
  const own = { from: pod.mac, to: victim.mac };
  const ends = { from: pod.ip4, to: victim.ip4 };
  const data = (from: string, to = victim.ip4) =>
    ipv4({ from, to }, Protocol.udp, udp({ from, to }, { from: 1, to: 9 }, [1]));
  const dhcp = udp(ends, { from: 67, to: 68 }, new Uint8Array(240));
  const own4 = data(pod.ip4);
  const firstFragment = ipv4(ends, Protocol.udp, dhcp.subarray(0, 8));
  firstFragment.set([0x20, 0], 6);
  return [
    ["from another pod's address", ethernet(own, EtherType.ipv4, data(victim.ip4))],
    ["from the gateway's address", ethernet(own, EtherType.ipv4, data(gateway.ip4))],
    ["from outside of the subnet", ethernet(own, EtherType.ipv4, data("192.0.2.99"))],
    ["from another node's pod", ethernet(own, EtherType.ipv4, data("10.78.0.5"))],
    ["from nowhere", ethernet(own, EtherType.ipv4, data("0.0.0.0"))],
    ["from this link", ethernet(own, EtherType.ipv4, data("169.254.1.1"))],
    ["from loopback", ethernet(own, EtherType.ipv4, data("127.0.0.1"))],
    ["for the victim's own 127.0.0.1", ethernet(own, EtherType.ipv4, data(pod.ip4, "127.0.0.1"))],
    ["for another address of loopback", ethernet(own, EtherType.ipv4, data(pod.ip4, "127.254.3.2"))],
    ["from another MAC", ethernet({ ...own, from: stranger }, EtherType.ipv4, own4)],
    ["from the gateway's MAC", ethernet({ ...own, from: gateway.mac }, EtherType.ipv4, own4)],
    ["from the victim's MAC", ethernet({ from: victim.mac, to: broadcast }, EtherType.ipv4, own4)],
    ["a DHCP server's offer", ethernet({ ...own, to: broadcast }, EtherType.ipv4, ipv4(ends, Protocol.udp, dhcp))],
    ["the same, its first fragment", ethernet(own, EtherType.ipv4, firstFragment)],
    [
      "a redirect",
      ethernet(own, EtherType.ipv4, ipv4(ends, 1, bytes(icmpRedirect, address(pod.ip4), own4.subarray(0, 28)))),
    ],
    [
      "ICMP's router advertisement",
      ethernet(own, EtherType.ipv4, ipv4(ends, 1, [9, 0, 0, 0, 1, 2, 0, 60, 0, 0, 0, 0])),
    ],
    [
      "a multicast router's query",
      ethernet(own, EtherType.ipv4, ipv4({ ...ends, to: "224.0.0.1" }, 2, [0x11, 100, 0, 0, 0, 0, 0, 0])),
    ],
    ["an IPv4 header that is none", ethernet(own, EtherType.ipv4, bytes([0x41], own4.subarray(1)))],
    ["IPv6 that says it is IPv4", ethernet(own, EtherType.ipv4, ipv6({ from: pod.ip6, to: victim.ip6 }, 59, []))],
    ["tagged, 802.1Q", tagged(ethernet(own, EtherType.ipv4, own4), 5)],
    ["tagged with VID 0", tagged(ethernet(own, EtherType.ipv4, own4), 0)],
    ["tagged, 802.1ad", tagged(ethernet(own, EtherType.ipv4, own4), 5, EtherType.qinq)],
    ["tagged twice", tagged(tagged(ethernet(own, EtherType.ipv4, own4), 6), 5, EtherType.qinq)],
    ["LLDP", ethernet({ from: pod.mac, to: "01:80:c2:00:00:0e" }, 0x88cc, [2, 1, 0])],
    ["LLDP to the victim", ethernet(own, 0x88cc, [2, 1, 0])],
    ["a BPDU", ethernet({ from: pod.mac, to: "01:80:c2:00:00:00" }, 38, [0x42, 0x42, 3, ...new Uint8Array(35)])],
    ["IPv4 to the bridges' group", ethernet({ from: pod.mac, to: "01:80:c2:00:00:05" }, EtherType.ipv4, own4)],
    ["GARP", ethernet({ from: pod.mac, to: "01:80:c2:00:00:20" }, 38, [0x42, 0x42, 3, ...new Uint8Array(35)])],
    ["MPLS", ethernet(own, 0x8847, own4)],
    ["PPPoE discovery", ethernet({ ...own, to: broadcast }, 0x8863, new Uint8Array(20))],
    ["EAPOL", ethernet(own, 0x888e, new Uint8Array(20))],
  ];
}

/** Neighbour discovery and other IPv6 that a pod must not send. */
export function forgedIpv6(pod: Party, victim: Party, gateway: Party): readonly Frame[] {
  const own = { from: pod.mac, to: victim.mac };
  const ends = { from: pod.ip6, to: victim.ip6 };
  const toAll = { from: pod.linkLocal, to: allNodes.ip };
  const frame = (packet: Uint8Array, to = victim.mac): Uint8Array => ethernet({ ...own, to }, EtherType.ipv6, packet);
  const nd = (between: Ends, message: Uint8Array): Uint8Array => frame(ipv6(between, Protocol.icmp6, message, 255));
  const advertises = (between: Ends, target: string, ...parts: readonly Part[]) =>
    nd(between, discovery(between, 136, target, ...parts));
  const asks = (between: Ends, target: string, ...parts: readonly Part[]) =>
    nd(between, discovery(between, 135, target, ...parts));
  const router = (between: Ends) =>
    icmp6(between, 134, bytes([64, 0, 7, 8], new Uint8Array(8), linkOption(1, pod.mac)));
  const poison = discovery(ends, 136, gateway.ip6, linkOption(2, pod.mac));
  const dhcp = udp(ends, { from: 547, to: 546 }, [2, 0, 0, 0]);
  const hidden = (name: string, number: number, header: readonly number[], message = poison): Frame => [
    name,
    frame(ipv6(ends, number, bytes(header, message), 255)),
  ];
  return [
    ["a router advertisement", frame(ipv6(toAll, Protocol.icmp6, router(toAll), 255), allNodes.mac)],
    ["the same from its global address", nd(ends, router(ends))],
    ["a router solicitation", nd(toAll, icmp6(toAll, 133, bytes([0, 0, 0, 0], linkOption(1, pod.mac))))],
    ["a redirect", nd(ends, icmp6(ends, 137, bytes([0, 0, 0, 0], address(pod.ip6), address(victim.ip6))))],
    ["an advertisement for the gateway", advertises(ends, gateway.ip6, linkOption(2, pod.mac))],
    ["for the gateway's link-local address", advertises(ends, gateway.linkLocal, linkOption(2, pod.mac))],
    ["for the victim", advertises(ends, victim.ip6, linkOption(2, pod.mac))],
    ["for itself at another MAC", advertises(ends, pod.ip6, linkOption(2, stranger))],
    ["for itself with two options", advertises(ends, pod.ip6, linkOption(2, pod.mac), linkOption(2, stranger))],
    [
      "for itself with another option first",
      advertises(ends, pod.ip6, [14, 1, 0, 0, 0, 0, 0, 0], linkOption(2, stranger)),
    ],
    [
      "for itself from the gateway's address",
      advertises({ ...ends, from: gateway.ip6 }, pod.ip6, linkOption(2, pod.mac)),
    ],
    ["a question from the gateway's address", asks({ ...ends, from: gateway.ip6 }, victim.ip6, linkOption(1, pod.mac))],
    ["a question that names another MAC", asks(ends, victim.ip6, linkOption(1, stranger))],
    ["the same as the second option", asks(ends, victim.ip6, linkOption(1, pod.mac), linkOption(1, stranger))],
    ["a probe of the victim's address", asks({ from: "::", to: solicitedNode("::1") }, victim.ip6)],
    [
      "a probe of its own address with a MAC",
      asks({ from: "::", to: solicitedNode("::1") }, pod.ip6, linkOption(1, pod.mac)),
    ],
    [
      "a marked probe that tells more",
      asks({ from: "::", to: solicitedNode("::1") }, pod.ip6, [14, 1, 1, 2, 3, 4, 5, 6], linkOption(1, stranger)),
    ],
    ["an answer that tells its MAC as a question does", advertises(ends, pod.ip6, linkOption(1, pod.mac))],
    ["an inverse question", nd(ends, icmp6(ends, 141, bytes([0, 0, 0, 0], linkOption(1, pod.mac))))],
    ["a multicast router's query", nd(toAll, icmp6(toAll, 130, new Uint8Array(20)))],
    hidden("hidden behind hop-by-hop options", 0, options(Protocol.icmp6)),
    hidden("hidden behind destination options", 60, options(Protocol.icmp6)),
    hidden("hidden behind a routing header", 43, routing(Protocol.icmp6)),
    hidden("hidden behind a mobility header", 135, mobility(Protocol.icmp6)),
    hidden("hidden behind HIP", 139, mobility(Protocol.icmp6)),
    hidden("hidden behind a shim", 140, mobility(Protocol.icmp6)),
    hidden("hidden behind an experiment", 253, mobility(Protocol.icmp6)),
    hidden("hidden behind another experiment", 254, mobility(Protocol.icmp6)),
    hidden("hidden behind two headers", 0, [...options(60), ...options(Protocol.icmp6)]),
    hidden("hidden in a fragment", 44, fragment(Protocol.icmp6)),
    hidden("hidden in a first fragment", 44, fragment(Protocol.icmp6, 0, 1)),
    hidden("hidden in a fragment behind options", 0, [...options(44), ...fragment(Protocol.icmp6)]),
    hidden("hidden in a fragment before options", 44, [...fragment(60), ...options(Protocol.icmp6)]),
    ...[0, 43, 51, 135, 139, 140, 253, 254].map((number) =>
      hidden(`hidden in a fragment before a header ${number}`, 44, [
        ...fragment(number, 0, 1),
        ...mobility(Protocol.icmp6),
      ]),
    ),
    ...[43, 60, 135, 254].map((number) => hidden(`a later fragment of a header ${number}`, 44, fragment(number, 1))),
    hidden("an authentication header before it", 51, [Protocol.icmp6, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0]),
    hidden("a router advertisement behind options", 60, options(Protocol.icmp6), router(ends)),
    hidden("a router advertisement in a fragment", 44, fragment(Protocol.icmp6), router(ends)),
    ["a DHCPv6 server's answer", frame(ipv6(ends, Protocol.udp, dhcp))],
    hidden("the same behind options", 60, options(Protocol.udp), dhcp),
    hidden("the same in a fragment", 44, fragment(Protocol.udp), dhcp),
    ["from another pod's address", frame(ipv6({ ...ends, from: victim.ip6 }, 59, []))],
    ["from another link-local address", frame(ipv6({ ...ends, from: "fe80::1" }, 59, []))],
    ["for the victim's own ::1", frame(ipv6({ ...ends, to: "::1" }, 59, []))],
    ["to no address", frame(ipv6({ ...ends, to: "::" }, 59, []))],
    ["from outside", frame(ipv6({ ...ends, from: "2001:db8::1" }, 59, []))],
    ["from nowhere, UDP", frame(ipv6({ ...ends, from: "::" }, Protocol.udp, dhcp.subarray(0, 8)))],
    ["from nowhere, echo", nd({ ...ends, from: "::" }, icmp6({ ...ends, from: "::" }, 128, [0, 0, 0, 0]))],
    ["from another MAC", ethernet({ ...own, from: stranger }, EtherType.ipv6, ipv6(ends, 59, []))],
    ["a header cut short", ethernet(own, EtherType.ipv6, ipv6(ends, 59, []).subarray(0, 20))],
  ];
}

/** What pods send on every day, and may. */
export function honestFrames(pod: Party, victim: Party): readonly Frame[] {
  const own = { from: pod.mac, to: victim.mac };
  const ends4 = { from: pod.ip4, to: victim.ip4 };
  const ends6 = { from: pod.ip6, to: victim.ip6 };
  const linkLocal = { from: pod.linkLocal, to: victim.linkLocal };
  const v4 = (protocol: number, payload: Part, flags = 0): Uint8Array => {
    const packet = ipv4(ends4, protocol, payload);
    packet.set(u16(flags), 6);
    return ethernet(own, EtherType.ipv4, packet);
  };
  const v6 = (ends: Ends, next: number, payload: Part, hops = 64): Uint8Array =>
    ethernet(own, EtherType.ipv6, ipv6(ends, next, payload, hops));
  const nd = (ends: Ends, type: 135 | 136, target: string, ...parts: readonly Part[]): Uint8Array =>
    v6(ends, Protocol.icmp6, discovery(ends, type, target, ...parts), 255);
  const says = (operation: 1 | 2, sender: string, target: string): Uint8Array =>
    ethernet(own, EtherType.arp, arp({ operation, senderMac: pod.mac, sender, target }));
  const fromNone = { from: "::", to: "ff02::1:ff00:10" };
  const listens = (ends: Ends, type: number): Uint8Array =>
    v6(ends, 0, bytes([Protocol.icmp6, 0, 5, 2, 0, 0, 1, 0], icmp6(ends, type, new Uint8Array(20))), 1);
  return [
    ["an ARP request", says(1, pod.ip4, victim.ip4)],
    ["an ARP reply", says(2, pod.ip4, victim.ip4)],
    ["a probe of its own address", says(1, "0.0.0.0", pod.ip4)],
    ["an announcement", says(1, pod.ip4, pod.ip4)],
    ["UDP", v4(Protocol.udp, udp(ends4, { from: 1, to: 9 }, [1]))],
    ["a DHCP client's question", v4(Protocol.udp, udp(ends4, { from: 68, to: 67 }, [1]))],
    ["a first fragment", v4(Protocol.udp, udp(ends4, { from: 1, to: 9 }, new Uint8Array(16)), 0x2000)],
    ["a later fragment", v4(Protocol.udp, new Uint8Array(16), 3)],
    ["echo", v4(1, [8, 0, 0, 0, 0, 0, 0, 0])],
    ["a multicast listener's report", v4(2, [0x22, 0, 0, 0, 0, 0, 0, 0])],
    ["GRE", v4(Protocol.gre, [0, 0, 8, 0])],
    ["IPv6: UDP", v6(ends6, Protocol.udp, udp(ends6, { from: 1, to: 9 }, [1]))],
    ["UDP from the link-local address", v6(linkLocal, Protocol.udp, udp(linkLocal, { from: 1, to: 9 }, [1]))],
    ["echo with IPv6", v6(ends6, Protocol.icmp6, icmp6(ends6, 128, [0, 0, 0, 0]))],
    ["packet too big", v6(ends6, Protocol.icmp6, icmp6(ends6, 2, [0, 0, 5, 0]))],
    ["echo behind options", v6(ends6, 60, bytes(options(Protocol.icmp6), icmp6(ends6, 128, [0, 0, 0, 0])))],
    ["UDP behind options", v6(ends6, 60, bytes(options(Protocol.udp), udp(ends6, { from: 1, to: 9 }, [1])))],
    [
      "a first fragment of UDP",
      v6(ends6, 44, bytes(fragment(Protocol.udp, 0, 1), udp(ends6, { from: 1, to: 9 }, new Uint8Array(16)))),
    ],
    ["a later fragment of UDP", v6(ends6, 44, bytes(fragment(Protocol.udp, 3), new Uint8Array(16)))],
    [
      "a first fragment of echo",
      v6(ends6, 44, bytes(fragment(Protocol.icmp6, 0, 1), icmp6(ends6, 128, new Uint8Array(20)))),
    ],
    ["a later fragment of echo", v6(ends6, 44, bytes(fragment(Protocol.icmp6, 3), new Uint8Array(16)))],
    ["ESP", v6(ends6, 50, new Uint8Array(16))],
    ["a question", nd(ends6, 135, victim.ip6, linkOption(1, pod.mac))],
    ["a question from the link-local address", nd(linkLocal, 135, victim.ip6, linkOption(1, pod.mac))],
    ["a question without a MAC", nd(ends6, 135, victim.ip6)],
    ["an answer", nd(ends6, 136, pod.ip6, linkOption(2, pod.mac))],
    ["an answer about the link-local address", nd(linkLocal, 136, pod.linkLocal, linkOption(2, pod.mac))],
    ["an answer without a MAC", nd(ends6, 136, pod.ip6)],
    ["whether somebody has its address", nd(fromNone, 135, pod.ip6)],
    ["the same with a nonce", nd(fromNone, 135, pod.linkLocal, [14, 1, 1, 2, 3, 4, 5, 6])],
    ["a report of groups", listens({ from: pod.linkLocal, to: "ff02::16" }, 143)],
    ["a report of a group, version 1", listens({ from: pod.linkLocal, to: "ff02::16" }, 131)],
    ["a report of groups from no address", listens({ from: "::", to: "ff02::16" }, 143)],
    ["the end of listening", listens({ from: pod.linkLocal, to: "ff02::2" }, 132)],
  ];
}
