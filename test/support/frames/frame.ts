import { bitsOf, type Ip, parseIp } from "../../../shared/net/ip.ts";
import { parseMac } from "../../../shared/net/mac.ts";

/** EtherTypes that tests speak of by name. */
export const EtherType = { ipv4: 0x0800, arp: 0x0806, vlan: 0x8100, ipv6: 0x86dd, qinq: 0x88a8 } as const;
/** Numbers of protocols in IPv4's `protocol` and IPv6's `next header`. */
export const Protocol = { tcp: 6, udp: 17, gre: 47, icmp6: 58 } as const;

/** Bytes, numbers of one octet each, or a list of both. */
export type Part = Uint8Array | readonly number[];

export function bytes(...parts: readonly Part[]): Uint8Array {
  return Uint8Array.from(parts.flatMap((part) => [...part]));
}

export const u16 = (value: number): readonly number[] => [(value >> 8) & 0xff, value & 0xff];
export const u32 = (value: number): readonly number[] => [...u16(value >>> 16), ...u16(value)];

export function mac(text: string): Uint8Array {
  const parsed = parseMac(text);
  if (parsed === undefined) throw new Error(`Not a hardware address: ${text}`);
  return parsed;
}

/** An address in network order: 4 or 16 bytes. */
export function address(text: string): Uint8Array {
  const ip = known(text);
  const length = bitsOf(ip.family) / 8;
  return Uint8Array.from({ length }, (_, i) => Number((ip.value >> BigInt(8 * (length - 1 - i))) & 0xffn));
}

function known(text: string): Ip {
  const ip = parseIp(text);
  if (ip === undefined) throw new Error(`Not an address: ${text}`);
  return ip;
}

/** The Internet checksum (RFC 1071). */
export function checksum(data: Uint8Array): number {
  let sum = 0;
  for (let i = 0; i < data.length; i += 2) sum += ((data[i] ?? 0) << 8) | (data[i + 1] ?? 0);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
  return ~sum & 0xffff;
}

export interface Ends {
  readonly from: string;
  readonly to: string;
}

/** An Ethernet frame of EtherType `type`. @param ends hardware addresses */
export const ethernet = (ends: Ends, type: number, payload: Part): Uint8Array =>
  bytes(mac(ends.to), mac(ends.from), u16(type), payload);

/** The frame with a VLAN tag more, outside of those that it has. */
export const tagged = (frame: Uint8Array, vid: number, type: number = EtherType.vlan): Uint8Array =>
  bytes(frame.subarray(0, 12), u16(type), u16(vid), frame.subarray(12));

export interface Arp {
  readonly operation: 1 | 2;
  readonly senderMac: string;
  readonly sender: string;
  readonly targetMac?: string;
  readonly target: string;
}

export const arp = ({ operation, senderMac, sender, targetMac = "00:00:00:00:00:00", target }: Arp): Uint8Array =>
  bytes(
    u16(1),
    u16(EtherType.ipv4),
    [6, 4],
    u16(operation),
    mac(senderMac),
    address(sender),
    mac(targetMac),
    address(target),
  );

/** An IPv4 packet; with `hops` its time to live. */
export function ipv4(ends: Ends, protocol: number, payload: Part, hops = 64): Uint8Array {
  const head = bytes(
    [0x45, 0],
    u16(20 + payload.length),
    [0, 0, 0, 0, hops, protocol, 0, 0],
    address(ends.from),
    address(ends.to),
  );
  head.set(u16(checksum(head)), 10);
  return bytes(head, payload);
}

/** An IPv6 packet; `next` is the number of what `payload` begins with, an extension header included. */
export const ipv6 = (ends: Ends, next: number, payload: Part, hops = 64): Uint8Array =>
  bytes([0x60, 0, 0, 0], u16(payload.length), [next, hops], address(ends.from), address(ends.to), payload);

/** What checksums of UDP, TCP and ICMPv6 cover besides their own bytes (RFC 8200, 8.1; the same sum for IPv4). */
function withPseudoHeader(ends: Ends, protocol: number, payload: Uint8Array): Uint8Array {
  return bytes(address(ends.from), address(ends.to), u32(payload.length), [0, 0, 0, protocol], payload);
}

/** A UDP datagram with its checksum. @param ends addresses of either family */
export function udp(ends: Ends, ports: { readonly from: number; readonly to: number }, data: Part): Uint8Array {
  const datagram = bytes(u16(ports.from), u16(ports.to), u16(8 + data.length), [0, 0], data);
  datagram.set(u16(checksum(withPseudoHeader(ends, Protocol.udp, datagram)) || 0xffff), 6);
  return datagram;
}

/** An ICMPv6 message with its checksum. @param body what follows type, code and checksum */
export function icmp6(ends: Ends, type: number, body: Part, code = 0): Uint8Array {
  const message = bytes([type, code, 0, 0], body);
  message.set(u16(checksum(withPseudoHeader(ends, Protocol.icmp6, message))), 2);
  return message;
}
