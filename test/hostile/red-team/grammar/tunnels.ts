import { u16 } from "../../../support/frames/frame.ts";
import type { Ends, Segment, Speech } from "./context.ts";
import { joined, type Made, raw } from "./made.ts";
import { udp } from "./segments.ts";
import { anyAddress } from "./vocabulary.ts";

/** A frame as it would come out of a tunnel: from anybody, to a pod or to anybody. */
function inner(speech: Speech): Made {
  const { draw, vocabulary, world, token } = speech;
  const family = draw.chance(60) ? 4 : 6;
  const [from, to] = [anyAddress(draw, vocabulary, world, family), anyAddress(draw, vocabulary, world, family)];
  const ends: Ends = { family, source: from.hex, destination: to.hex };
  const datagram = udp(speech, ends, 40_000, 40_001, token, "").bytes;
  const length = u16(datagram.length + (family === 4 ? 20 : 0));
  const head =
    family === 4 ? joined([0x45, 0], length, [0, 0, 0, 0, 64, 17, 0, 0]) : joined([0x60, 0, 0, 0], length, [17, 64]);
  const packet = joined(head, raw(from.hex), raw(to.hex), datagram);
  const macs = [raw(draw.pick(vocabulary.macs).hex), raw(draw.pick(vocabulary.macs).hex)];
  const frame = joined(...macs, u16(family === 4 ? 0x0800 : 0x86dd), packet);
  return { bytes: frame, words: `${from.words} to ${to.words}` };
}

/** Packets of every tunnel, with a packet in them. */
export function tunnelled(speech: Speech, ends: Ends): Segment {
  const { draw, world } = speech;
  const { bytes: frame, words } = inner(speech);
  const packet = frame.subarray(14);
  const isIpv4 = frame[12] === 8;
  const key = [0, 0, draw.chance(50) ? 0 : draw.below(40), 0];
  const from = 1024 + draw.below(60_000);
  const makers: Readonly<Record<"geneve" | "vxlan" | "gre" | "stt" | "ip", () => Segment>> = {
    geneve: () => udp(speech, ends, from, 6081, joined([0, 0, 0x65, 0x58], key, frame), `Geneve of ${words}`),
    vxlan: () =>
      udp(speech, ends, from, draw.pick([4789, 4789, 8472]), joined([8, 0, 0, 0], key, frame), `VXLAN of ${words}`),
    gre: () => {
      const keyed = draw.chance(50);
      const head = joined([keyed ? 0x20 : 0, 0, 0x65, 0x58], keyed ? key : []);
      return { protocol: 47, bytes: joined(head, frame), words: `GRE of ${words}` };
    },
    stt: () => {
      const head = joined(u16(from), u16(7471), new Uint8Array(8), [0x50, 0x10, 0, 0, 0, 0, 0, 0]);
      return { protocol: 6, bytes: joined(head, new Uint8Array(18), frame), words: `STT of ${words}` };
    },
    ip: () => ({ protocol: isIpv4 ? 4 : 41, bytes: packet, words: `IP in IP of ${words}` }),
  };
  const { tunnel } = world;
  const mine = tunnel === "none" ? "geneve" : tunnel;
  return makers[draw.chance(50) ? mine : draw.pick(["geneve", "vxlan", "gre", "stt", "ip"] as const)]();
}
