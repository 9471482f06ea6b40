import { Extension } from "./extension-headers.ts";
import { bytes, checksum, type Ends, EtherType, ipv4, ipv6, type Part, Protocol, u16, u32, udp } from "./frame.ts";

const isFamily6 = ({ to }: Ends): boolean => to.includes(":");

/** What `payload` is cut into. @param at where, in bytes, a multiple of 8 @param next what the payload begins with */
export function fragments(ends: Ends, next: number, payload: Uint8Array, at: number, id = 7): readonly Uint8Array[] {
  const piece = isFamily6(ends) ? piece6 : piece4;
  return [piece(ends, next, payload.subarray(0, at), 0, 1, id), piece(ends, next, payload.subarray(at), at, 0, id)];
}

/** A datagram that does not fit into one. @param at as above; longer ones pass where short first ones are taken for an attack */
export function longDatagram(ends: Ends, ports: { readonly from: number; readonly to: number }, id: number, at = 1400) {
  return fragments(ends, Protocol.udp, udp(ends, ports, new Uint8Array(2000)), at, id);
}

type Cut = (ends: Ends, next: number, data: Part, from: number, more: 0 | 1, id: number) => Uint8Array;

const piece6: Cut = (ends, next, data, from, more, id) =>
  ipv6(ends, Extension.fragment, bytes([next, 0], u16(from | more), u32(id), data), 255);

const piece4: Cut = (ends, next, data, from, more, id) => {
  const packet = ipv4(ends, next, data);
  packet.set([...u16(id & 0xffff), ...u16((more << 13) | (from / 8)), packet[8] ?? 0, packet[9] ?? 0, 0, 0], 4);
  packet.set(u16(checksum(packet.subarray(0, 20))), 10);
  return packet;
};

/** Whether it is a later fragment, which is useless without the first. */
export function isLaterFragment(frame: Uint8Array): boolean {
  const word = (at: number): number => ((frame[at] ?? 0) << 8) | (frame[at + 1] ?? 0);
  if (word(12) === EtherType.ipv4) return (word(20) & 0x1fff) !== 0;
  return word(12) === EtherType.ipv6 && frame[20] === Extension.fragment && word(56) >> 3 !== 0;
}
