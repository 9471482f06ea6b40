import { behind, Extension } from "../support/frames/extension-headers.ts";
import { fragments, longDatagram } from "../support/frames/fragments.ts";
import {
  arp,
  bytes,
  type Ends,
  EtherType,
  ethernet,
  ipv4,
  ipv6,
  mac,
  type Part,
  Protocol,
  tagged,
  udp,
} from "../support/frames/frame.ts";
import { icmp4, neighbourAdvertisement, redirect6, routerAdvertisement } from "../support/frames/icmp.ts";

/** Who sends or is meant. */
export interface Party {
  readonly mac: string;
  readonly 4: string;
  readonly 6: string;
}

/** What nobody may get: some of it needs several frames. */
export interface Forbidden {
  readonly name: string;
  readonly frames: readonly Uint8Array[];
}

/** That the switch walks through to what is behind, and that a Linux kernel knows. */
const walked = ["hopByHop", "routing", "fragment", "authentication", "destination"] as const;
/** That the switch does not look behind. */
const unread = ["mobility", "hip", "shim6", "experiment1", "experiment2"] as const;

const one = (name: string, frame: Uint8Array): Forbidden => ({ name, frames: [frame] });
/** Of a connection from sender to target that is open, as far as the switch knows. */
export const openPorts = { from: 40_000, to: 9 } as const;
/** Longer than what connection tracking in user space takes for a first fragment (1280 bytes). */
const longFragment = 1288;

/** The link-local address of a MAC (RFC 4291, appendix A). */
function linkLocal(hardware: string): string {
  const [a = 0, b, c, d, e, f] = mac(hardware);
  const words = [
    [a ^ 2, b],
    [c, 0xff],
    [0xfe, d],
    [e, f],
  ].map(([high = 0, low = 0]) => ((high << 8) | low).toString(16));
  return `fe80::${words.join(":")}`;
}

/** What a pod may send to nobody, though it sends under its own addresses and MAC. */
export function forbiddenFrames(sender: Party, target: Party): readonly Forbidden[] {
  return [
    ...routerFrames(sender, target),
    ...dhcpFrames(sender, target),
    ...hiddenFrames(sender, target),
    ...taggedFrames(sender, target),
    ...loopbackFrames(sender, target),
  ];
}

/** Advertisements and redirects, of which a kernel would believe that a router sends them. */
export function routerFrames(sender: Party, target: Party): readonly Forbidden[] {
  const local = linkLocal(sender.mac);
  const all = "ff02::1";
  const frame6 = (to: string, packet: Uint8Array) =>
    ethernet({ from: sender.mac, to: to === all ? "33:33:00:00:00:01" : target.mac }, EtherType.ipv6, packet);
  const advertised = (from: string, to: string, kinds: readonly Extension[] = []): Uint8Array => {
    const ends = { from, to };
    return frame6(to, behind(ends, kinds, Protocol.icmp6, routerAdvertisement(ends, "fd66::", mac(sender.mac))));
  };
  const own = { from: sender[4], to: target[4] };
  const frame4 = (payload: Uint8Array): Uint8Array =>
    ethernet({ from: sender.mac, to: target.mac }, EtherType.ipv4, ipv4(own, 1, payload));
  // Connection tracking lets a redirect pass that is about a packet which it knows.
  const back = { from: target[4], to: sender[4] };
  const cited = ipv4(back, Protocol.udp, udp(back, { from: openPorts.to, to: openPorts.from }, []));
  return [
    one("router advertisement from link-local to all", advertised(local, all)),
    one("router advertisement from link-local to one", advertised(local, target[6])),
    one("router advertisement from its own address", advertised(sender[6], target[6])),
    ...walked.map((kind) =>
      one(`router advertisement behind ${kind}`, advertised(sender[6], target[6], [Extension[kind]])),
    ),
    ...[local, sender[6]].map((from) => {
      const ends = { from, to: target[6] };
      const packet = ipv6(ends, Protocol.icmp6, redirect6(ends, local, "2001:db8::1"), 255);
      return one(
        `redirect of IPv6 from ${from === local ? "link-local" : "its own address"}`,
        frame6(target[6], packet),
      );
    }),
    {
      name: "router advertisement in two fragments",
      frames: fragments(
        { from: sender[6], to: target[6] },
        Protocol.icmp6,
        routerAdvertisement({ from: sender[6], to: target[6] }, "fd66::", mac(sender.mac)),
        24,
      ).map((piece) => frame6(target[6], piece)),
    },
    one("redirect of IPv4", frame4(icmp4(5, bytes(own.from.split(".").map(Number), cited), 1))),
    one(
      "router advertisement of IPv4",
      frame4(icmp4(9, [1, 2, 0, 30, ...own.from.split(".").map(Number), 0, 0, 0, 0])),
    ),
  ];
}

/** Answers of servers of DHCP. */
export function dhcpFrames(sender: Party, target: Party): readonly Forbidden[] {
  const data = new Uint8Array(240);
  const frame = (to: string, from: string, address: string, hardware: string): Uint8Array =>
    datagram({ from: sender.mac, to: hardware }, { from, to: address }, to === "6" ? [547, 546] : [67, 68], data);
  return [
    one("answer of DHCP to one", frame("4", sender[4], target[4], target.mac)),
    one("answer of DHCP to all", frame("4", sender[4], "255.255.255.255", "ff:ff:ff:ff:ff:ff")),
    one("answer of DHCPv6 from its own address", frame("6", sender[6], target[6], target.mac)),
    one("answer of DHCPv6 from link-local", frame("6", linkLocal(sender.mac), target[6], target.mac)),
    ...([4, 6] as const).map((family) => {
      const [from, to] = family === 4 ? [67, 68] : [547, 546];
      const pieces = longDatagram({ from: sender[family], to: target[family] }, { from, to }, family);
      const type = family === 4 ? EtherType.ipv4 : EtherType.ipv6;
      const link = { from: sender.mac, to: target.mac };
      return {
        name: `answer of DHCP in fragments, IPv${family}`,
        frames: pieces.map((piece) => ethernet(link, type, piece)),
      };
    }),
  ];
}

/** Neighbour discovery where a switch might not see it. */
export function hiddenFrames(sender: Party, target: Party): readonly Forbidden[] {
  const ends = { from: sender[6], to: target[6] };
  const frame = (packet: Uint8Array) => ethernet({ from: sender.mac, to: target.mac }, EtherType.ipv6, packet);
  const lie = neighbourAdvertisement(ends, "fd00:10:1::77", mac(sender.mac));
  const truth = neighbourAdvertisement(ends, sender[6], mac(sender.mac));
  const filling = bytes([Protocol.icmp6, longFragment / 8 - 1, 1, 255], new Uint8Array(longFragment - 4));
  const chain = fillWithPadding(filling);
  return [
    ...[...walked, ...unread].map((kind) =>
      one(`lie behind ${kind}`, frame(behind(ends, [Extension[kind]], Protocol.icmp6, lie))),
    ),
    ...unread.map((kind) => one(`truth behind ${kind}`, frame(behind(ends, [Extension[kind]], Protocol.icmp6, truth)))),
    one("lie behind options and mobility", frame(behind(ends, [Extension.hopByHop, Extension.mobility], 58, lie))),
    { name: "truth in two fragments", frames: fragments(ends, Protocol.icmp6, truth, 24).map(frame) },
    {
      name: "lie whose header is in the second fragment",
      frames: fragments(ends, Extension.destination, bytes(chain, lie), longFragment).map(frame),
    },
    {
      name: "lie behind options that are cut",
      frames: fragments(ends, Extension.destination, bytes(chain, lie), longFragment - 8).map(frame),
    },
    one("header that is cut off", frame(ipv6(ends, Extension.destination, [Protocol.icmp6, 9, 1, 4]))),
  ];
}

/** Options of `length` bytes (a multiple of 8) that only fill. */
function fillWithPadding(header: Uint8Array): Uint8Array {
  for (let at = 2; at < header.length; ) {
    const rest = header.length - at;
    // PadN is at least two bytes long and at most 257.
    const length = rest <= 257 ? rest : Math.min(257, rest - 2);
    header.set([1, length - 2], at);
    at += length;
  }
  return header;
}

/** Frames that belong to a VLAN. */
export function taggedFrames(sender: Party, target: Party): readonly Forbidden[] {
  const link = { from: sender.mac, to: target.mac };
  const plain = ([4, 6] as const).map((family) =>
    datagram(link, { from: sender[family], to: target[family] }, [40_001, 9], [1, 2, 3, 4]),
  );
  const question = arp({ operation: 1, senderMac: sender.mac, sender: sender[4], target: target[4] });
  const asked = ethernet({ from: sender.mac, to: "ff:ff:ff:ff:ff:ff" }, EtherType.arp, question);
  return [...plain, asked].flatMap((frame, i) => {
    const what = ["IPv4", "IPv6", "ARP"][i];
    return [
      ...[0, 1, 5, 4095, 0xe000].map((tci) => one(`${what} tagged ${tci}`, tagged(frame, tci))),
      one(`${what} tagged 802.1ad`, tagged(frame, 5, EtherType.qinq)),
      one(`${what} tagged twice`, tagged(tagged(frame, 5), 7, EtherType.qinq)),
      one(`${what} tagged twice alike`, tagged(tagged(frame, 5), 7)),
    ];
  });
}

/** Addresses that no packet on a link has. */
export function loopbackFrames(sender: Party, target: Party): readonly Forbidden[] {
  const frame = (from: string, to: string) =>
    datagram({ from: sender.mac, to: target.mac }, { from, to }, [40_002, 80], [1]);
  return [
    one("to 127.0.0.1", frame(sender[4], "127.0.0.1")),
    one("to 127.255.0.9", frame(sender[4], "127.255.0.9")),
    one("to ::1", frame(sender[6], "::1")),
    one("from 127.0.0.1", frame("127.0.0.1", target[4])),
    one("from ::1", frame("::1", target[6])),
  ];
}

/** A datagram in its frame, of whichever family the addresses are. @param link MACs @param ports from, to */
export function datagram(link: Ends, ends: Ends, [from, to]: readonly [number, number], data: Part): Uint8Array {
  const payload = udp(ends, { from, to }, data);
  return ends.to.includes(":")
    ? ethernet(link, EtherType.ipv6, ipv6(ends, Protocol.udp, payload))
    : ethernet(link, EtherType.ipv4, ipv4(ends, Protocol.udp, payload));
}
