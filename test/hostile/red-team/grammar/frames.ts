import { u16 } from "../../../support/frames/frame.ts";
import { token } from "../token.ts";
import type { World } from "../world.ts";
import type { Ends, Segment, Speech } from "./context.ts";
import { Draw } from "./draw.ts";
import { joined, type Made, raw } from "./made.ts";
import { mutated } from "./mutate.ts";
import { arp, icmp6 } from "./neighbours.ts";
import { fragments, ipv4, ipv6 } from "./packets.ts";
import { plainUdp, segment } from "./segments.ts";
import { tunnelled } from "./tunnels.ts";
import { anyAddress, type Named, type Vocabulary } from "./vocabulary.ts";

/** One frame to be sent, with the number that its token says. */
export interface Shot extends Made {
  readonly number: number;
  /** What has to be sent before it: the first fragment of a packet. */
  readonly before?: Uint8Array;
}

const otherTypes: readonly (readonly [number, string])[] = [
  [0x0200, "PUP"],
  [0x0842, "wake on LAN"],
  [0x22f0, "AVTP"],
  [0x22f3, "TRILL"],
  [0x6558, "Ethernet in Ethernet"],
  [0x8035, "RARP"],
  [0x809b, "AppleTalk"],
  [0x8137, "IPX"],
  [0x8847, "MPLS"],
  [0x8848, "MPLS multicast"],
  [0x8863, "PPPoE discovery"],
  [0x8864, "PPPoE"],
  [0x888e, "EAPOL"],
  [0x8892, "PROFINET"],
  [0x88a2, "ATA"],
  [0x88cc, "LLDP"],
  [0x88e5, "MACsec"],
  [0x88e7, "backbone bridge"],
  [0x88f7, "PTP"],
  [0x8902, "CFM"],
  [0x8906, "FCoE"],
  [0x8915, "RoCE"],
  [0x894f, "NSH"],
  [0x9000, "loopback"],
];

const tags: readonly (readonly [number, string])[] = [
  [0x8100, "802.1Q"],
  [0x8100, "802.1Q"],
  [0x88a8, "802.1ad"],
  [0x9100, "QinQ"],
];

/** Numbers of controls begin here, above all others. */
const firstControl = 0x8000_0000;

/** What a pod's root may send: frames by grammar, and some of them damaged. */
export class Grammar {
  readonly #draw: Draw;
  readonly #vocabulary: Vocabulary;
  readonly #world: World;
  /** Bytes; longer ones the interface does not take. */
  readonly #longest: number;
  /** Of their own, as a lossy switch needs more of them now and then: the seed's frames stay the same. */
  readonly #controlDraw = new Draw(1);
  #number = 0;
  #controlNumber = firstControl;

  constructor(draw: Draw, vocabulary: Vocabulary, world: World, mtu: number) {
    this.#draw = draw;
    this.#vocabulary = vocabulary;
    this.#world = world;
    this.#longest = mtu + 14;
  }

  /** The next frame, or two that belong together. */
  next(): readonly Shot[] {
    this.#draw.newFrame();
    const speech = this.#speech(this.#draw, ++this.#number);
    const makers: readonly (readonly [number, () => readonly Made[]])[] = [
      [36, () => this.#packets(speech, 4)],
      [40, () => this.#packets(speech, 6)],
      [12, () => [this.#around(speech, 0x0806, arp(speech), this.#arpMac(speech))]],
      [7, () => [this.#otherType(speech)]],
      [5, () => [this.#llc(speech)]],
    ];
    const made = this.#draw.weighted(makers)();
    const shots = made.map((one, i) => this.#shot(one, i === made.length - 1 ? speech : undefined));
    const [first, second] = shots;
    return first === undefined || second === undefined ? shots : [first, { ...second, before: first.bytes }];
  }

  /** A frame that has to arrive. @param mac that it goes to */
  control(to: Named, mac: Named): Shot {
    const speech = this.#speech(this.#controlDraw, ++this.#controlNumber);
    const family = to.hex.length === 8 ? 4 : 6;
    const ends: Ends = { family, source: this.#vocabulary.own[family].hex, destination: to.hex };
    const made = family === 4 ? ipv4(speech, ends, plainUdp(speech, ends)) : ipv6(speech, ends, plainUdp(speech, ends));
    return { ...this.#around(speech, family === 4 ? 0x0800 : 0x86dd, made, mac), number: speech.number };
  }

  #speech(draw: Draw, number: number): Speech & { readonly number: number } {
    return { draw, vocabulary: this.#vocabulary, world: this.#world, number, token: token(number) };
  }

  #shot(made: Made, speech: { readonly number: number; readonly token: Uint8Array } | undefined): Shot {
    const { bytes, words } = this.#draw.chance(12) ? mutated(this.#draw, made, speech?.token) : made;
    return { bytes: bytes.subarray(0, this.#longest), words, number: speech?.number ?? 0 };
  }

  #packets(speech: Speech, family: 4 | 6): readonly Made[] {
    const { draw } = speech;
    const kind = draw.weighted([
      [50, "segment"],
      [family === 6 ? 35 : 0, "icmp6"],
      [15, "tunnel"],
    ] as const);
    const { ends, mac, words } = this.#ends(speech, family, kind);
    const content: Segment =
      kind === "icmp6" ? icmp6(speech, ends) : kind === "tunnel" ? tunnelled(speech, ends) : segment(speech, ends);
    const type = family === 4 ? 0x0800 : 0x86dd;
    const around = (made: Made): Made =>
      this.#around(speech, type, { bytes: made.bytes, words: `${words}: ${made.words}` }, mac);
    if (draw.chance(6)) return fragments(speech, ends, content).map(around);
    const hopLimit = kind === "icmp6" ? 255 : 64;
    return [around(family === 4 ? ipv4(speech, ends, content) : ipv6(speech, ends, content, { hopLimit }))];
  }

  #ends(
    speech: Speech,
    family: 4 | 6,
    kind: "segment" | "icmp6" | "tunnel",
  ): { readonly ends: Ends; readonly mac: Named; readonly words: string } {
    const { draw, vocabulary, world } = speech;
    const isLocal = family === 6 && (kind === "icmp6" ? draw.chance(70) : draw.chance(10));
    const own = isLocal ? vocabulary.ownLinkLocal : vocabulary.own[family];
    const source = draw.errs() ? anyAddress(draw, vocabulary, world, family) : own;
    const usual = vocabulary.usual[family];
    const isUsual = usual.length > 0 && kind !== "icmp6" && !draw.errs();
    const { to, mac } = isUsual ? draw.pick(usual) : this.#unusual(speech, family, kind);
    const chosen = draw.errs() ? draw.pick(vocabulary.macs) : mac;
    const ends = { family, source: source.hex, destination: to.hex };
    return { ends, mac: chosen, words: `${source.words} to ${to.words}` };
  }

  #unusual(
    speech: Speech,
    family: 4 | 6,
    kind: "segment" | "icmp6" | "tunnel",
  ): { readonly to: Named; readonly mac: Named } {
    const { draw, vocabulary, world } = speech;
    const groups = vocabulary.addresses[6].filter(({ hex }) => hex.startsWith("ff02"));
    const to = kind === "icmp6" && draw.chance(60) ? draw.pick(groups) : anyAddress(draw, vocabulary, world, family);
    if (family === 6 && to.hex.startsWith("ff"))
      return { to, mac: { words: "its group", hex: `3333${to.hex.slice(-8)}` } };
    return { to, mac: draw.chance(60) ? vocabulary.gatewayMac : draw.pick(vocabulary.macs) };
  }

  #arpMac({ draw, vocabulary }: Speech): Named {
    return draw.chance(70) ? { words: "broadcast", hex: "ffffffffffff" } : draw.pick(vocabulary.macs);
  }

  /** With its addresses, and now and then with tags. */
  #around({ draw, vocabulary }: Speech, type: number, { bytes, words }: Made, to: Named): Made {
    const from = draw.errs() ? draw.pick(vocabulary.macs) : vocabulary.ownMac;
    const chosen =
      draw.errs() && draw.chance(60) ? [draw.pick(tags), ...(draw.chance(25) ? [draw.pick(tags)] : [])] : [];
    const made = chosen.map(([tag, name]) => {
      const vid = draw.pick([0, 1, 2, 5, 100, 4094, 4095, draw.below(65_536)]);
      return { bytes: joined(u16(tag), u16(vid)), words: `${name} ${vid & 0xfff} > ` };
    });
    const head = joined(raw(to.hex), raw(from.hex), ...made.map((one) => one.bytes), u16(type));
    const before = made.map((one) => one.words).join("");
    const source = from === vocabulary.ownMac ? "" : `from ${from.words}, `;
    return { bytes: joined(head, bytes), words: `${before}${source}to ${to.words}: ${words}` };
  }

  #otherType(speech: Speech): Made {
    const { draw, token: end, vocabulary, world } = speech;
    const [type, words] = draw.chance(70) ? draw.pick(otherTypes) : [0x0600 + draw.below(0xfa00), "some type"];
    const ends: Ends = {
      family: 4,
      source: vocabulary.own[4].hex,
      destination: anyAddress(draw, vocabulary, world, 4).hex,
    };
    // What a switch would find behind it if it looked further.
    const inner = draw.chance(40) ? ipv4(speech, ends, plainUdp(speech, ends)).bytes : joined(draw.bytes(8), end);
    const label = type === 0x8847 || type === 0x8848 ? [0, 0, 0x11, 64] : [];
    const to = draw.chance(50) ? vocabulary.gatewayMac : draw.pick(vocabulary.macs);
    return this.#around(speech, type, { bytes: joined(label, inner), words: `${words} (0x${type.toString(16)})` }, to);
  }

  #llc(speech: Speech): Made {
    const { draw, token: end, vocabulary } = speech;
    const [body, words, to] = draw.pick([
      [
        joined([0x42, 0x42, 3, 0, 0, 0, 0, 0], new Uint8Array(8), raw(vocabulary.ownMac.hex), draw.bytes(12)),
        "BPDU",
        "0180c2000000",
      ],
      [joined([0x42, 0x42, 3, 0, 0, 2, 0x80, 0x7c], draw.bytes(28)), "topology change", "0180c2000000"],
      [joined([0xaa, 0xaa, 3, 0, 0, 0, 8, 0], draw.bytes(20)), "SNAP of IPv4", "ffffffffffff"],
      [joined([0xaa, 0xaa, 3, 0, 0, 0xc, 0x20, 0], draw.bytes(12)), "CDP", "01000ccccccc"],
      [joined([0xe0, 0xe0, 3], draw.bytes(20)), "NetWare", "ffffffffffff"],
      [joined([0xfe, 0xfe, 3], draw.bytes(20)), "IS-IS", "0180c2000014"],
      [draw.bytes(3 + draw.below(40)), "random LLC", "ffffffffffff"],
    ] as const);
    const bytes = joined(body, end);
    const mac = draw.chance(70) ? { words: "its group", hex: to } : draw.pick(vocabulary.macs);
    return this.#around(speech, bytes.length, { bytes, words }, mac);
  }
}
