import { type Ip, ipOf } from "../../shared/net/ip.ts";

/** Between whom a packet goes. */
export interface PacketEnds {
  readonly source: Ip;
  readonly destination: Ip;
  /** Number of the protocol above IP. */
  readonly protocol: number;
  /** Of TCP, UDP and SCTP, in a packet's first fragment. */
  readonly ports?: { readonly source: number; readonly destination: number };
  /** Of the whole packet, as its header says. */
  readonly bytes: number;
}

const ipv6HeaderBytes = 40;
/** TCP, UDP, SCTP: their headers begin with both ports. */
const withPorts: readonly number[] = [6, 17, 132];
/** Hop-by-hop options, routing, destination options: a length in units of eight bytes stands in each one's second byte. */
const extensions: readonly number[] = [0, 43, 60];
const fragmentHeader = 44;

/** Reads an IP packet from its header on, of which the end may be cut off; `undefined` where that is none. */
export function packetEnds(packet: Uint8Array): PacketEnds | undefined {
  const view = new DataView(packet.buffer, packet.byteOffset, packet.byteLength);
  const version = packet.length === 0 ? 0 : view.getUint8(0) >> 4;
  if (version === 4 && packet.length >= 20) {
    const protocol = view.getUint8(9);
    const isFirst = (view.getUint16(6) & 0x1fff) === 0;
    return {
      source: ipOf(4, BigInt(view.getUint32(12))),
      destination: ipOf(4, BigInt(view.getUint32(16))),
      protocol,
      ...(isFirst ? portsAt(view, protocol, (view.getUint8(0) & 0xf) * 4) : {}),
      bytes: view.getUint16(2),
    };
  }
  if (version !== 6 || packet.length < ipv6HeaderBytes) return undefined;
  const { protocol, at } = upperLayer(view);
  const address = (from: number): Ip => ipOf(6, (view.getBigUint64(from) << 64n) | view.getBigUint64(from + 8));
  return {
    ...{ source: address(8), destination: address(24), protocol },
    ...(at === undefined ? {} : portsAt(view, protocol, at)),
    bytes: ipv6HeaderBytes + view.getUint16(4),
  };
}

/** Behind the extension headers; `at` is undefined where the packet does not have it. */
function upperLayer(view: DataView): { readonly protocol: number; readonly at: number | undefined } {
  let [protocol, at] = [view.getUint8(6), ipv6HeaderBytes];
  while (extensions.includes(protocol) && at + 8 <= view.byteLength)
    [protocol, at] = [view.getUint8(at), at + 8 * (view.getUint8(at + 1) + 1)];
  if (protocol !== fragmentHeader || at + 8 > view.byteLength) return { protocol, at };
  const isFirst = (view.getUint16(at + 2) & 0xfff8) === 0;
  return { protocol: view.getUint8(at), at: isFirst ? at + 8 : undefined };
}

const portsAt = (view: DataView, protocol: number, at: number): Pick<PacketEnds, "ports"> =>
  withPorts.includes(protocol) && at + 4 <= view.byteLength
    ? { ports: { source: view.getUint16(at), destination: view.getUint16(at + 2) } }
    : {};
