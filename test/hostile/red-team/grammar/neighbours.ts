import { u16, u32 } from "../../../support/frames/frame.ts";
import { type Ends, type Segment, type Speech, summed } from "./context.ts";
import { joined, type Made, raw, sized } from "./made.ts";
import { anyAddress, type Named } from "./vocabulary.ts";

/** Whom a message is about: mostly the pod itself, or who it should not be about. */
function about(speech: Speech, family: 4 | 6): Named {
  const { draw, vocabulary, world } = speech;
  return draw.errs() || draw.chance(20) ? anyAddress(draw, vocabulary, world, family) : vocabulary.own[family];
}

const aMac = ({ draw, vocabulary }: Speech): Named => (draw.errs() ? draw.pick(vocabulary.macs) : vocabulary.ownMac);

/** All operations, right and wrong, about the pod and about others. Its end carries the token, as padding does. */
export function arp(speech: Speech): Made {
  const { draw, vocabulary, world, token } = speech;
  const operation = draw.weighted([
    [6, 1],
    [6, 2],
    [1, 3],
    [1, 8],
    [1, draw.below(65_536)],
  ]);
  const hardware = draw.errs() && draw.chance(10) ? draw.below(65_536) : 1;
  const [senderMac, sender] = [aMac(speech), about(speech, 4)];
  const gratuitous = draw.chance(20);
  const target = gratuitous ? sender : anyAddress(draw, vocabulary, world, 4);
  const targetMac = draw.chance(70) ? "000000000000" : draw.pick(vocabulary.macs).hex;
  const bytes = joined(
    ...[u16(hardware), u16(0x0800), [6, 4], u16(operation)],
    ...[senderMac, sender, { hex: targetMac }, target].map(({ hex }) => raw(hex)),
    token,
  );
  const words = `ARP ${operation}: ${sender.words} is at ${senderMac.words}, to ${target.words}`;
  return { bytes, words };
}

const option = (type: number, body: Uint8Array): Uint8Array => {
  const eights = Math.ceil((2 + body.length) / 8);
  return joined([type, eights], sized(body, eights * 8 - 2));
};

/** An option that nobody knows, with the token in it. */
const tokenOption = ({ token }: Speech): Uint8Array => option(253, joined(new Uint8Array(14 - token.length), token));

/** Any options, of which most belong to routers. */
function options(speech: Speech, linkLayer: number): Uint8Array {
  const { draw, vocabulary } = speech;
  const prefix = raw(draw.pick(vocabulary.addresses[6]).hex);
  const known: readonly Uint8Array[] = [
    option(linkLayer, raw(aMac(speech).hex)),
    option(
      3,
      joined(
        [64, 0xc0],
        u32(86_400),
        u32(14_400),
        u32(0),
        raw(`${vocabulary.own[6].hex.slice(0, 15)}9`),
        new Uint8Array(8),
      ),
    ),
    option(5, joined([0, 0], u32(1280 + draw.below(200)))),
    option(24, joined([64, 0x08], u32(3600), prefix.subarray(0, 8))),
    option(25, joined([0, 0], u32(3600), raw(vocabulary.own[6].hex))),
    option(14, draw.bytes(6)),
    option(draw.below(256), draw.bytes(draw.below(24))),
  ];
  const chosen = known.filter((_, i) => (i === 0 ? draw.chance(80) : draw.chance(25)));
  const made = joined(...chosen, tokenOption(speech));
  // An option of no length ends what a reader takes.
  if (draw.errs() && draw.chance(10)) made[1] = 0;
  return made;
}

const routerLifetime = 1800;

/** Messages of IPv6's neighbours and routers, and of group members. */
export function icmp6(speech: Speech, ends: Ends): Segment {
  const { draw, token, vocabulary, world } = speech;
  const someone = about(speech, 6);
  const anyone = anyAddress(draw, vocabulary, world, 6);
  const made = (type: number, body: Uint8Array, words: string): Segment => {
    const code = draw.errs() && draw.chance(10) ? draw.below(256) : 0;
    return { protocol: 58, bytes: summed(speech, ends, 58, joined([type, code, 0, 0], body), 2), words };
  };
  const flags = [draw.below(8) << 5, 0, 0, 0];
  const router = joined([draw.below(256), draw.below(2) << 7], u16(routerLifetime), u32(0), u32(0), options(speech, 1));
  return draw.weighted<() => Segment>([
    [4, () => made(133, joined([0, 0, 0, 0], options(speech, 1)), "router solicitation")],
    [6, () => made(134, router, "router advertisement")],
    [6, () => made(135, joined([0, 0, 0, 0], raw(anyone.hex), options(speech, 1)), `solicitation of ${anyone.words}`)],
    [8, () => made(136, joined(flags, raw(someone.hex), options(speech, 2)), `advertisement of ${someone.words}`)],
    [
      4,
      () =>
        made(
          137,
          joined([0, 0, 0, 0], raw(someone.hex), raw(anyone.hex), options(speech, 2)),
          `redirect of ${anyone.words}`,
        ),
    ],
    [2, () => made(draw.pick([130, 131, 132]), joined([0, 0, 0, 0], raw(anyone.hex), token), "MLD")],
    [1, () => made(143, joined([0, 0, 0, 1, 4, 0, 0, 0], raw(anyone.hex), token), "MLDv2 report")],
    [5, () => made(128, joined(draw.bytes(4), token), "echo request")],
    [1, () => made(draw.pick([1, 2, 3, 4]), joined(draw.bytes(4), token), "ICMPv6 error")],
    [
      1,
      () => made(draw.pick([138, 139, 141, 142, 148, 151, 152]), joined(draw.bytes(4), token), "other control message"),
    ],
    [1, () => made(draw.below(256), joined(draw.bytes(4), token), "some ICMPv6")],
  ])();
}
