import type { Ip } from "../../../../shared/net/ip.ts";
import { parseMac } from "../../../../shared/net/mac.ts";
import type { TransportName } from "../pipeline/traced.ts";

/** A packet to inject: a connection's first one, with something behind its headers by which it is known again. */
export interface InjectedPacket {
  readonly sourceMac: string;
  readonly destinationMac: string;
  readonly source: Ip;
  /** Of the same family. */
  readonly destination: Ip;
  readonly protocol: TransportName;
  /** Of ICMP the identifier. */
  readonly sourcePort: number;
  /** Of ICMP nothing. */
  readonly destinationPort: number;
  readonly payload: Uint8Array;
}

const hops = 64;
const echoRequest = { 4: 8, 6: 128 } as const;
const numbers = { icmp: { 4: 1, 6: 58 }, tcp: { 4: 6, 6: 6 }, udp: { 4: 17, 6: 17 } } as const;
/** An offset of five words, and SYN. */
const onlySyn = 0x5002;
const window = 64_240;

/** The frame as the pod would send it: Ethernet, IP, and an echo request, a SYN or a datagram. */
export function frameOf(packet: InjectedPacket): Uint8Array {
  const { family } = packet.source;
  const body = transportOf(packet);
  const ip = family === 4 ? header4(packet, body) : header6(packet, body);
  const frame = new Uint8Array(14 + ip.length + body.length);
  frame.set(parseMac(packet.destinationMac) ?? [], 0);
  frame.set(parseMac(packet.sourceMac) ?? [], 6);
  frame.set(family === 4 ? [0x08, 0x00] : [0x86, 0xdd], 12);
  frame.set(ip, 14);
  frame.set(body, 14 + ip.length);
  return frame;
}

function transportOf(packet: InjectedPacket): Uint8Array {
  const { protocol, source, sourcePort, destinationPort, payload } = packet;
  const head = protocol === "tcp" ? 20 : 8;
  const body = new Uint8Array(head + payload.length);
  const view = new DataView(body.buffer);
  body.set(payload, head);
  if (protocol === "icmp") {
    view.setUint8(0, echoRequest[source.family]);
    view.setUint16(4, sourcePort);
    view.setUint16(6, 1);
  } else {
    view.setUint16(0, sourcePort);
    view.setUint16(2, destinationPort);
  }
  if (protocol === "udp") view.setUint16(4, body.length);
  if (protocol === "tcp") {
    view.setUint32(4, crypto.getRandomValues(new Uint32Array(1))[0] ?? 0);
    view.setUint16(12, onlySyn);
    view.setUint16(14, window);
  }
  const at = { icmp: 2, tcp: 16, udp: 6 }[protocol];
  const isPseudo = protocol !== "icmp" || source.family === 6;
  const sum = checksum([...(isPseudo ? [pseudoHeader(packet, body.length)] : []), body]);
  // For UDP 0 says that there is none.
  view.setUint16(at, protocol === "udp" && sum === 0 ? 0xffff : sum);
  return body;
}

/** RFC 768, RFC 9293 (3.1), RFC 8200 (8.1). */
function pseudoHeader({ source, destination, protocol }: InjectedPacket, length: number): Uint8Array {
  const number = numbers[protocol][source.family];
  const rest =
    source.family === 4 ? [0, number, length >> 8, length & 0xff] : [0, 0, length >> 8, length & 0xff, 0, 0, 0, number];
  return new Uint8Array([...bytesOf(source), ...bytesOf(destination), ...rest]);
}

/** RFC 791, 3.1; not to be fragmented. */
function header4({ source, destination, protocol }: InjectedPacket, body: Uint8Array): Uint8Array {
  const header = new Uint8Array(20);
  const view = new DataView(header.buffer);
  view.setUint8(0, 0x45);
  view.setUint16(2, header.length + body.length);
  view.setUint16(4, crypto.getRandomValues(new Uint16Array(1))[0] ?? 0);
  view.setUint16(6, 0x4000);
  view.setUint8(8, hops);
  view.setUint8(9, numbers[protocol][4]);
  header.set(bytesOf(source), 12);
  header.set(bytesOf(destination), 16);
  view.setUint16(10, checksum([header]));
  return header;
}

/** RFC 8200, 3. */
function header6({ source, destination, protocol }: InjectedPacket, body: Uint8Array): Uint8Array {
  const header = new Uint8Array(40);
  const view = new DataView(header.buffer);
  view.setUint8(0, 0x60);
  view.setUint16(4, body.length);
  view.setUint8(6, numbers[protocol][6]);
  view.setUint8(7, hops);
  header.set(bytesOf(source), 8);
  header.set(bytesOf(destination), 24);
  return header;
}

function bytesOf({ family, value }: Ip): Uint8Array {
  const bytes = new Uint8Array(family === 4 ? 4 : 16);
  for (let i = bytes.length - 1, rest = value; i >= 0; i--, rest >>= 8n) bytes[i] = Number(rest & 0xffn);
  return bytes;
}

/** The Internet checksum (RFC 1071) of parts, of which all but the last have an even length. */
function checksum(parts: readonly Uint8Array[]): number {
  let sum = 0;
  for (const part of parts) for (let i = 0; i < part.length; i += 2) sum += ((part[i] ?? 0) << 8) | (part[i + 1] ?? 0);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
  return ~sum & 0xffff;
}
