import type { Cidr } from "../../shared/net/ip.ts";
import type { EncryptionKind, EspKind } from "./encryption-config.ts";
import type { TrafficMode, TunnelType } from "./ovs-config.ts";

/** Bytes that a tunnel adds inside an IPv4 packet's Ethernet frame: outer IP, its own headers, the inner Ethernet header. */
const overhead: Readonly<Record<TunnelType, number>> = { geneve: 50, vxlan: 50, gre: 42, stt: 76 };
/** Outer IP and UDP, and WireGuard's own 32. There is no tunnel inside. */
const wireguardOverhead = 60;
/** An outer header of IPv6 is this much longer. */
const ipv6More = 20;
/** What strongSwan gives the device through which it encrypts itself (kernel-libipsec's TUN). */
const userspaceDeviceMtu = 1400;

/** How the tunnel's packets are encrypted. */
export interface MtuEncryption {
  readonly encryption: EncryptionKind;
  readonly ipsec: { readonly esp: EspKind; readonly forceUdp: boolean };
}

/**
 * The MTU of pods, so that a packet still fits the transport interface with the tunnel's headers and what encrypts it.
 * @param transport bytes
 * @param by absent: nothing is encrypted
 */
export function podMtu(
  transport: number,
  mode: TrafficMode,
  tunnel: TunnelType,
  nodeAddresses: readonly Cidr[],
  by?: MtuEncryption,
): number {
  if (mode === "noEncap" || mode === "networkPolicyOnly") return transport;
  const outer = 20 + (nodeAddresses.length > 0 && nodeAddresses.every(({ ip }) => ip.family === 6) ? ipv6More : 0);
  if (by?.encryption === "wireguard") return transport - wireguardOverhead + 20 - outer;
  const inside = overhead[tunnel] - 20;
  if (by?.encryption !== "ipsec") return transport - outer - inside;
  const { esp, forceUdp } = by.ipsec;
  if (esp === "kernel") return largestInEsp(transport - outer - (forceUdp ? udpHeader : 0)) - inside;
  // In ESP's tunnel mode the whole packet is inside, and always in UDP.
  const packet = Math.min(largestInEsp(transport - outer - udpHeader), userspaceDeviceMtu);
  return packet - outer - inside;
}

const udpHeader = 8;
/** ESP with AES-GCM (RFC 4303, RFC 4106): SPI and sequence number, initialization vector, check value. */
const espHeaders = 8 + 8 + 16;

/** The most that fits behind an IP header into ESP: with its trailer of two bytes it is a multiple of four. */
const largestInEsp = (room: number): number => Math.floor((room - espHeaders) / 4) * 4 - 2;
