import { checksum, u16, u32 } from "../../../support/frames/frame.ts";
import type { Ends, Segment, Speech } from "./context.ts";
import { joined, type Made, raw } from "./made.ts";

const lies = ({ draw }: Speech): boolean => draw.errs() && draw.chance(10);

const hops = ({ draw }: Speech, usual: number): number =>
  draw.errs() ? draw.pick([0, 1, 2, 64, 255, draw.below(256)]) : usual;

/** Options that once changed where packets go, and others; in whole words. */
function ipv4Options({ draw, vocabulary }: Speech): Made {
  if (!draw.errs() || !draw.chance(40)) return { bytes: new Uint8Array(), words: "" };
  const route = draw.pick(vocabulary.addresses[4]);
  return draw.pick([
    { bytes: joined([131, 7, 4], raw(route.hex), [0]), words: ", loose source route" },
    { bytes: joined([137, 7, 4], raw(route.hex), [0]), words: ", strict source route" },
    { bytes: joined([7, 7, 4], [0, 0, 0, 0, 0]), words: ", record route" },
    { bytes: joined([148, 4, 0, 0]), words: ", router alert" },
    { bytes: joined([68, 8, 5, 0], [0, 0, 0, 0]), words: ", timestamp" },
    { bytes: draw.bytes(4 * (1 + draw.below(10))), words: ", random options" },
  ]);
}

/** @param fragment what stands in its header of that; its packet is known by `identification` */
export function ipv4(
  speech: Speech,
  ends: Ends,
  { protocol, bytes: body, words }: Segment,
  fragment = 0,
  identification = speech.draw.below(65_536),
): Made {
  const { draw } = speech;
  const options = ipv4Options(speech);
  const headBytes = 20 + options.bytes.length;
  const length = lies(speech) ? draw.below(2048) : headBytes + body.length;
  const head = joined(
    [0x40 | (lies(speech) ? draw.below(16) : headBytes / 4), draw.below(2) * draw.below(256)],
    ...[u16(length), u16(identification), u16(fragment)],
    ...[[hops(speech, 64), protocol, 0, 0], raw(ends.source), raw(ends.destination), options.bytes],
  );
  if (lies(speech)) head[0] = (draw.below(16) << 4) | 5;
  head.set(u16(lies(speech) ? draw.below(65_536) : checksum(head)), 10);
  return { bytes: joined(head, body), words: `${words}${options.words}` };
}

interface Header {
  /** Its number, as the header before it names it. */
  readonly type: number;
  /** With nothing at its first byte yet. */
  readonly bytes: Uint8Array;
  readonly words: string;
}

const padding = [1, 4, 0, 0, 0, 0];

function extension({ draw, vocabulary }: Speech): Header {
  const route = raw(draw.pick(vocabulary.addresses[6]).hex);
  const known: readonly Header[] = [
    { type: 0, bytes: joined([0, 0], padding), words: "hop-by-hop" },
    { type: 0, bytes: joined([0, 0, 5, 2, 0, 0, 1, 0]), words: "router alert" },
    { type: 0, bytes: joined([0, 0, 0xc2, 4], u32(70_000)), words: "jumbogram" },
    { type: 60, bytes: joined([0, 0], padding), words: "destination options" },
    { type: 60, bytes: joined([0, 2, 0xc9, 16], route, [1, 2, 0, 0]), words: "home address" },
    { type: 43, bytes: joined([0, 2, 0, 1, 0, 0, 0, 0], route), words: "routing 0" },
    { type: 43, bytes: joined([0, 2, 2, 1, 0, 0, 0, 0], route), words: "routing 2" },
    { type: 43, bytes: joined([0, 2, 4, 0, 0, 0, 0, 0], route), words: "segment routing" },
    { type: 44, bytes: joined([0, 0, 0, 0], draw.bytes(4)), words: "whole fragment" },
    { type: 51, bytes: joined([0, 4, 0, 0], draw.bytes(20)), words: "AH" },
    { type: 135, bytes: joined([0, 0, 1, 0], draw.bytes(4)), words: "mobility" },
    { type: 139, bytes: joined([0, 4, 1, 0x11], draw.bytes(36)), words: "HIP" },
    { type: 140, bytes: joined([0, 0], draw.bytes(6)), words: "shim6" },
    { type: draw.pick([253, 254, 204]), bytes: joined([0, 0], draw.bytes(6)), words: "unknown header" },
  ];
  return draw.pick(known);
}

/** A chain of extension headers before the segment: mostly none, some of one, few long. */
function extensions(speech: Speech): readonly Header[] {
  const { draw } = speech;
  if (!draw.errs()) return [];
  return Array.from(
    {
      length: draw.weighted([
        [6, 1],
        [3, 2],
        [1, 3 + draw.below(8)],
      ]),
    },
    () => extension(speech),
  );
}

export function ipv6(
  speech: Speech,
  ends: Ends,
  segment: Segment,
  { hopLimit = 64, fixed }: { readonly hopLimit?: number; readonly fixed?: readonly Header[] } = {},
): Made {
  const { draw } = speech;
  const chain = fixed ?? extensions(speech);
  const types = [...chain.map(({ type }) => type), segment.protocol];
  const headers = chain.map(({ bytes }, i) => {
    const made = bytes.slice();
    made[0] = types[i + 1] ?? 59;
    if (lies(speech)) made[1] = draw.below(256);
    return made;
  });
  const body = joined(...headers, segment.bytes);
  const isJumbo = chain.some(({ words }) => words === "jumbogram");
  const length = lies(speech) ? draw.below(2048) : isJumbo ? 0 : body.length;
  const head = joined(
    [lies(speech) ? draw.below(256) : 0x60, draw.below(2) * draw.below(256), 0, 0],
    ...[u16(length), [types[0] ?? 59, hops(speech, hopLimit)], raw(ends.source), raw(ends.destination)],
  );
  const behind = chain.map(({ words }) => (words === "" ? "" : `${words} > `)).join("");
  return { bytes: joined(head, body), words: `${behind}${segment.words}` };
}

/**
 * The packet in two fragments, the second with a token of its own behind. The first of IPv6 may end before the header
 * that ports or types stand in.
 */
export function fragments(speech: Speech, ends: Ends, segment: Segment): readonly [Made, Made] {
  const { draw, token } = speech;
  const isTiny = ends.family === 6 && draw.chance(50);
  const whole = isTiny ? joined([segment.protocol, 0], padding, segment.bytes) : segment.bytes;
  const cut = 8 * (isTiny ? 1 : Math.max(1, draw.below(Math.floor(whole.length / 8))));
  const protocol = isTiny ? 60 : segment.protocol;
  // Of its own, or a first fragment that waits would take the second one of another packet.
  const identification = draw.bytes(4);
  const [high = 0, low = 0] = identification;
  const part = (bytes: Uint8Array, name: string, offset: number, flag: 0 | 1): Made => {
    const made = { protocol, bytes, words: `${isTiny ? "tiny " : ""}${name} fragment of ${segment.words}` };
    if (ends.family === 4) return ipv4(speech, ends, made, (flag << 13) | (offset / 8), (high << 8) | low);
    const header = joined([0, 0], u16(offset | flag), identification);
    return ipv6(speech, ends, made, { fixed: [{ type: 44, bytes: header, words: "" }] });
  };
  return [part(whole.subarray(0, cut), "first", 0, 1), part(joined(whole.subarray(cut), token), "second", cut, 0)];
}
