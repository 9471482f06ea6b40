import { formatIp, type Ip } from "../../../shared/net/ip.ts";
import { connectionMarks, type Source } from "../../datapath/ovs/pipeline/vocabulary.ts";

export type Protocol = { readonly t: "icmp" } | { readonly t: "tcp" | "udp"; readonly port: number };

/** A packet that is only thought of, at the port where it comes in. */
export interface Packet {
  readonly inPort: number;
  readonly protocol: Protocol;
  /** Both of one family. */
  readonly source: { readonly ip: Ip; readonly mac: string };
  readonly destination: { readonly ip: Ip; readonly mac: string };
  /** Came through the tunnel from the node of this address, with this key. */
  readonly tunnel?: { readonly from: Ip; readonly key: number };
  /** It answers a packet of a connection that began like this; absent: it is a connection's first. */
  readonly replyTo?: (typeof Source)[keyof typeof Source];
}

/** What a client's port is where nothing depends on it. */
const clientPort = 40_000;

/** As `ofproto/trace` takes it. Without a time to live the packet would die at the first hop. */
export function packetText(packet: Packet): string {
  const { inPort, source, destination, tunnel, replyTo } = packet;
  const is6 = destination.ip.family === 6;
  const [from, to] = is6 ? ["ipv6_src", "ipv6_dst"] : ["nw_src", "nw_dst"];
  return [
    ...protocolParts(packet, is6),
    `in_port=${inPort}`,
    ...(tunnel === undefined ? [] : tunnelParts(tunnel)),
    `dl_src=${source.mac}`,
    `dl_dst=${destination.mac}`,
    `${from}=${formatIp(source.ip)}`,
    `${to}=${formatIp(destination.ip)}`,
    "nw_ttl=64",
    // A group that goes by the data path's hash finds no bucket without one.
    "dp_hash=1",
    ...(replyTo === undefined ? [] : [`ct_mark=${replyTo << connectionMarks.source.from}`]),
  ].join(",");
}

const tunnelParts = ({ from, key }: { readonly from: Ip; readonly key: number }): readonly string[] => [
  `${from.family === 6 ? "tun_ipv6_src" : "tun_src"}=${formatIp(from)}`,
  `tun_id=${key}`,
];

function protocolParts({ protocol, replyTo }: Packet, is6: boolean): readonly string[] {
  const isReply = replyTo !== undefined;
  if (protocol.t !== "icmp") {
    const [src, dst] = isReply ? [protocol.port, clientPort] : [clientPort, protocol.port];
    return [is6 ? `${protocol.t}6` : protocol.t, `${protocol.t}_src=${src}`, `${protocol.t}_dst=${dst}`];
  }
  // RFC 792 and RFC 4443, section 4: echo request and reply.
  if (is6) return ["icmp6", `icmpv6_type=${isReply ? 129 : 128}`, "icmpv6_code=0"];
  return ["icmp", `icmp_type=${isReply ? 0 : 8}`, "icmp_code=0"];
}

/** What connection tracking is to say at each of the packet's visits, as many as there may be; what is spare is ignored. */
export function trackingStates({ replyTo }: Packet): readonly string[] {
  const state = replyTo === undefined ? "trk,new" : "trk,est,rpl";
  return Array.from({ length: 16 }, () => ["--ct-next", state]).flat();
}
