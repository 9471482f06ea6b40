import { type Ip, ipOf } from "../../../../shared/net/ip.ts";
import { formatMac } from "../../../../shared/net/mac.ts";
import type { PacketIn } from "../../../protocols/openflow/mod.ts";
import { type PacketEnds, packetEnds } from "../../packet-ends.ts";

interface BitRange {
  readonly field: { readonly name: string };
  readonly from: number;
  readonly count: number;
}

/** A traced packet as it came to a table. */
export interface Observation {
  readonly table: number;
  readonly atMs: number;
  readonly ends: PacketEnds;
  readonly destinationMac: string;
  readonly ttl: number;
  /** Of a register or a mark; 0 where the switch says nothing. */
  value(bits: BitRange): number;
  /** A whole field. */
  field(name: string): bigint | undefined;
  /** The same on each node and in each table, whatever is translated on the way. */
  readonly fingerprint: string;
  /** From the Ethernet header on. */
  readonly frame: Uint8Array;
}

const ethernetBytes = 14;

/** `undefined` for what is no whole IP packet's beginning. */
export function observationOf({ table, match, packet: frame }: PacketIn, atMs: number): Observation | undefined {
  const packet = frame.subarray(ethernetBytes);
  const ends = packetEnds(packet);
  if (ends === undefined) return undefined;
  const field = (name: string): bigint | undefined => match.fields.find((one) => one.field.name === name)?.value;
  return {
    ...{ table, atMs, ends, field, frame },
    destinationMac: formatMac(frame.subarray(0, 6)),
    ttl: packet[ends.source.family === 4 ? 8 : 7] ?? 0,
    value: ({ field: { name }, from, count }) =>
      Number(((field(name) ?? 0n) >> BigInt(from)) & ((1n << BigInt(count)) - 1n)),
    fingerprint: fingerprintOf(packet, ends),
  };
}

/** The other end of the tunnel that it goes by, or has come by. */
export function tunnelAddress(seen: Observation, end: "src" | "dst"): Ip | undefined {
  const four = seen.field(`tun_${end}`) ?? 0n;
  if (four !== 0n) return ipOf(4, four);
  const six = seen.field(`tun_ipv6_${end}`) ?? 0n;
  return six === 0n ? undefined : ipOf(6, six);
}

/** Whom the connection's first packet asked for, as connection tracking has it. */
export function askedFor(seen: Observation): { readonly ip: Ip; readonly port: number } | undefined {
  const four = seen.field("ct_nw_dst") ?? 0n;
  const six = seen.field("ct_ipv6_dst") ?? 0n;
  const port = Number(seen.field("ct_tp_dst") ?? 0n);
  if (four !== 0n) return { ip: ipOf(4, four), port };
  return six === 0n ? undefined : { ip: ipOf(6, six), port };
}

/** Of what neither routers nor translation change: all but addresses, ports, checksums and counts of hops. */
function fingerprintOf(packet: Uint8Array, { protocol, source: { family }, bytes }: PacketEnds): string {
  const head = family === 4 ? ((packet[0] ?? 0) & 0xf) * 4 : 40;
  const kept = [...packet.subarray(head)];
  // Ports, and the checksum: of TCP in bytes 16 and 17, of UDP in 6 and 7, of ICMP in 2 and 3.
  const changed = protocol === 6 ? [0, 1, 2, 3, 16, 17] : protocol === 17 ? [0, 1, 2, 3, 6, 7] : [2, 3];
  for (const at of changed) if (at < kept.length) kept[at] = 0;
  const id = family === 4 ? packet.subarray(4, 6) : new Uint8Array(2);
  return Bun.hash(new Uint8Array([protocol, bytes >> 8, bytes & 0xff, ...id, ...kept])).toString(16);
}
