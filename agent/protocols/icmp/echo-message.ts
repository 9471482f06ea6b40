import type { Family } from "../../../shared/net/ip.ts";

/** Questions and answers of ICMP echo (RFC 792) and ICMPv6 echo (RFC 4443), as sockets take and give them. */

const types = { 4: { request: 8, reply: 0 }, 6: { request: 128, reply: 129 } } as const;
/** Type, code, checksum, identifier, sequence number. */
const headerBytes = 8;
/** Tells our question's answer from all others: nobody who has not seen the question can make one. */
export const tokenBytes = 8;
export const ipHeaderBytes = { 4: 20, 6: 40 } as const;

/** The smallest packet, IP header included. */
export const smallestPacket = (family: Family): number => ipHeaderBytes[family] + headerBytes + tokenBytes;

/**
 * A question, without IP header.
 * @param packetBytes of the packet with its IP header, at least `smallestPacket`; zeros fill it up
 */
export function echoRequest(
  family: Family,
  id: number,
  token: Uint8Array,
  packetBytes = smallestPacket(family),
): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(new ArrayBuffer(Math.max(packetBytes, smallestPacket(family)) - ipHeaderBytes[family]));
  const view = new DataView(bytes.buffer);
  view.setUint8(0, types[family].request);
  view.setUint16(4, id);
  view.setUint16(6, 1);
  bytes.set(token.subarray(0, tokenBytes), headerBytes);
  // Of ICMPv6 the kernel makes it, since the addresses belong to it.
  if (family === 4) view.setUint16(2, checksum(bytes));
  return bytes;
}

/**
 * Whether it is the answer to the question with this token.
 * @param received what a socket gives: of a raw socket of IPv4 with the IP header in front
 */
export function answers(family: Family, received: Uint8Array, isRaw: boolean, token: Uint8Array): boolean {
  const at = family === 4 && isRaw ? ipv4HeaderBytes(received[0] ?? 0) : 0;
  if (received.length < at + headerBytes + tokenBytes) return false;
  if (received[at] !== types[family].reply || received[at + 1] !== 0) return false;
  const from = at + headerBytes;
  for (let i = 0; i < tokenBytes; i++) if (received[from + i] !== token[i]) return false;
  return true;
}

/** By the first byte: version and length in words. One that is none is longer than any packet. */
const ipv4HeaderBytes = (first: number): number =>
  first >> 4 === 4 && (first & 0x0f) >= 5 ? (first & 0x0f) * 4 : Number.POSITIVE_INFINITY;

/** RFC 1071, of bytes whose own checksum is 0. */
function checksum(bytes: Uint8Array): number {
  let sum = 0;
  for (let i = 0; i < bytes.length; i += 2) sum += ((bytes[i] ?? 0) << 8) | (bytes[i + 1] ?? 0);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
  return ~sum & 0xffff;
}
