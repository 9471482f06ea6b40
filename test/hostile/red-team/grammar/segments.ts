import { checksum, u16 } from "../../../support/frames/frame.ts";
import { type Ends, type Segment, type Speech, summed } from "./context.ts";
import type { Weighted } from "./draw.ts";
import { joined, raw } from "./made.ts";
import { anyAddress } from "./vocabulary.ts";

const udpProtocol = 17;
const tcpProtocol = 6;

type Maker = (speech: Speech, ends: Ends) => Segment;

/** Ports that mean something to somebody, from and to. */
const knownPorts: readonly (readonly [number, number, string])[] = [
  [40_000, 53, "DNS"],
  [67, 68, "DHCP server's answer"],
  [68, 67, "DHCP client's question"],
  [547, 546, "DHCPv6 server's answer"],
  [546, 547, "DHCPv6 client's question"],
  [5353, 5353, "mDNS"],
  [520, 520, "RIP"],
  [521, 521, "RIPng"],
  [49_152, 3784, "BFD"],
  [123, 123, "NTP"],
  [40_000, 10_250, "kubelet's port"],
  [40_000, 2379, "etcd's port"],
  [40_000, 80, "HTTP"],
];

export const plainUdp: Maker = (speech, ends) => {
  const { draw } = speech;
  const [from, to] = [1024 + draw.below(60_000), 20_000 + draw.below(40_000)];
  return udp(speech, ends, from, to, speech.token, `UDP ${from} to ${to}`);
};

const knownUdp: Maker = (speech, ends) => {
  const [from, to, words] = speech.draw.pick(knownPorts);
  // Of BOOTP: an answer with its magic cookie and two options, as clients read it.
  const answer = joined([2, 1, 6, 0], speech.draw.bytes(4), new Uint8Array(228), [99, 130, 83, 99, 53, 1, 2, 255]);
  return udp(speech, ends, from, to, from === 67 ? joined(answer, speech.token) : speech.token, words);
};

export function udp(speech: Speech, ends: Ends, from: number, to: number, data: Uint8Array, words: string): Segment {
  const length = 8 + data.length;
  const said = speech.draw.errs() && speech.draw.chance(15) ? speech.draw.below(2 * length) : length;
  const datagram = joined(u16(from), u16(to), u16(said), [0, 0], data);
  const bytes = summed(speech, ends, udpProtocol, datagram, 6);
  // IPv4 takes them without.
  if (ends.family === 4 && speech.draw.chance(5)) bytes.set([0, 0], 6);
  return { protocol: udpProtocol, bytes, words: `${words}${said === length ? "" : `, said to be ${said} long`}` };
}

const tcp: Maker = (speech, ends) => {
  const { draw, token } = speech;
  const flags = draw.weighted([
    [4, 0x02],
    [2, 0x10],
    [1, 0x12],
    [1, 0x04],
    [1, 0x3f],
    [1, draw.below(256)],
  ]);
  const to = draw.weighted([
    [4, 20_000 + draw.below(40_000)],
    [1, 7471],
    [1, 2379],
    [1, 80],
  ]);
  const options = draw.chance(30)
    ? joined([2, 4], u16(draw.below(65_536)), [1, 3, 3, draw.below(256)])
    : new Uint8Array();
  const words = (5 + options.length / 4) << 4;
  const head = joined(
    u16(1024 + draw.below(60_000)),
    u16(to),
    draw.bytes(8),
    [words, flags],
    u16(65_535),
    [0, 0, 0, 0],
  );
  const bytes = summed(speech, ends, tcpProtocol, joined(head, options, token), 16);
  return { protocol: tcpProtocol, bytes, words: `TCP to ${to}, flags ${flags}` };
};

const icmp4: Maker = (speech, ends) => {
  const { draw, token, vocabulary } = speech;
  const type = draw.weighted([
    [5, 8],
    [2, 0],
    [4, 5],
    [2, 9],
    [2, 3],
    [1, 11],
    [1, 12],
    [1, 13],
    [1, 17],
    [1, draw.below(256)],
  ]);
  const target = anyAddress(draw, vocabulary, speech.world, 4);
  const quoted = joined(
    [0x45, 0],
    u16(48),
    [0, 0, 0, 0, 64, 17, 0, 0],
    raw(ends.destination),
    raw(target.hex),
    draw.bytes(8),
  );
  const body =
    type === 5 ? joined(raw(vocabulary.own[4].hex), quoted) : joined(draw.bytes(4), type === 3 ? quoted : []);
  const bytes = joined([type, draw.below(type === 5 ? 4 : 2), 0, 0], body, token);
  bytes.set(u16(checksum(bytes)), 2);
  return { protocol: 1, bytes, words: `ICMP ${type}${type === 5 ? ` of ${target.words}` : ""}` };
};

const otherProtocols: readonly (readonly [number, string])[] = [
  [2, "IGMP"],
  [33, "DCCP"],
  [50, "ESP"],
  [51, "AH in the end"],
  [59, "no next header"],
  [88, "EIGRP"],
  [89, "OSPF"],
  [103, "PIM"],
  [108, "IPComp"],
  [112, "VRRP"],
  [115, "L2TP"],
  [132, "SCTP"],
  [136, "UDP-Lite"],
  [137, "MPLS"],
  [253, "an experiment"],
];

const other: Maker = ({ draw, token }) => {
  const [protocol, words] = draw.chance(70) ? draw.pick(otherProtocols) : [draw.below(256), "protocol"];
  return { protocol, bytes: joined(draw.bytes(draw.below(5) * 4), token), words: `${words} (${protocol})` };
};

/** Of IPv4, and of IPv6 what is no ICMPv6. */
export function segment(speech: Speech, ends: Ends): Segment {
  const choices: Weighted<Maker> = [
    [40, plainUdp],
    [15, knownUdp],
    [15, tcp],
    [ends.family === 4 ? 18 : 0, icmp4],
    [12, other],
  ];
  return speech.draw.weighted(choices)(speech, ends);
}
