import type { Cidr } from "../../shared/net/ip.ts";
import type { EncryptionKind } from "./encryption-config.ts";
import type { TrafficMode, TunnelType } from "./ovs-config.ts";

/** Bytes that a tunnel adds inside an IPv4 packet's Ethernet frame: outer IP, its own headers, the inner Ethernet header. */
const overhead: Readonly<Record<TunnelType, number>> = { geneve: 50, vxlan: 50, gre: 42, stt: 76 };
/** Outer IP and UDP, and WireGuard's own 32. There is no tunnel inside. */
const wireguardOverhead = 60;
/** An outer header of IPv6 is this much longer. */
const ipv6More = 20;

/**
 * The MTU of pods, so that a packet still fits the transport interface with the tunnel's headers.
 * @param transport bytes
 */
export function podMtu(
  transport: number,
  mode: TrafficMode,
  tunnel: TunnelType,
  nodeAddresses: readonly Cidr[],
  encryption: EncryptionKind = "none",
): number {
  if (mode === "noEncap" || mode === "networkPolicyOnly") return transport;
  const is6 = nodeAddresses.length > 0 && nodeAddresses.every(({ ip }) => ip.family === 6);
  return transport - (encryption === "wireguard" ? wireguardOverhead : overhead[tunnel]) - (is6 ? ipv6More : 0);
}
