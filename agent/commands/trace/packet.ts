import { CniCode, CniError } from "../../../shared/errors.ts";
import { formatIp, type Ip, sameIp } from "../../../shared/net/ip.ts";
import { connectionMarks, Source, virtualMac } from "../../datapath/ovs/pipeline/vocabulary.ts";
import type { FoundPod, SwitchPort } from "./switch-ports.ts";

export type Protocol = { readonly t: "icmp" } | { readonly t: "tcp" | "udp"; readonly port: number };

/** A hypothetical packet, at the port where it enters the switch. */
export interface Packet {
  readonly inPort: number;
  readonly protocol: Protocol;
  /** Both of one family. */
  readonly source: { readonly ip: Ip; readonly mac: string };
  readonly destination: { readonly ip: Ip; readonly mac: string };
  /** The tunnel that the packet came through: the other node's address, and the key. */
  readonly tunnel?: { readonly from: Ip; readonly key: number };
  /** Set for a reply: the source of the connection's first packet; absent: this is the first packet. */
  readonly replyTo?: (typeof Source)[keyof typeof Source];
}

/** The client's port, which does not matter. */
const clientPort = 40_000;

/**
 * The packet in the syntax of `ofproto/trace`. With a TTL, since a packet without one would be dropped at the first
 * hop.
 */
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
    // A group that selects by the data path's hash needs one to find a bucket.
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

/** The states that connection tracking reports at each of the packet's passes; surplus ones are ignored. */
export function trackingStates({ replyTo }: Packet): readonly string[] {
  const state = replyTo === undefined ? "trk,new" : "trk,est,rpl";
  return Array.from({ length: 16 }, () => ["--ct-next", state]).flat();
}

/** Where one end of the connection is. */
export type End = Extract<FoundPod, { t: "pod" | "address" }>;

export interface Journey {
  /** Who opened the connection, and to whom. */
  readonly client: End;
  readonly server: End;
  readonly protocol: Protocol;
  /** The server's answer is followed, not the client's first packet. */
  readonly isReply: boolean;
  /** The packet came from this node of the cluster, with this tunnel key. */
  readonly fromTunnel: { readonly from: Ip; readonly key: number } | undefined;
  /** Replaces the sender's own addresses, for tracing spoofed packets. */
  readonly as: { readonly ip: Ip | undefined; readonly mac: string | undefined };
  /** Whether pods reach everything through the gateway, also pods of their own node. */
  readonly isRoutedOnly: boolean;
}

const action = "trace the packet";

/**
 * The packet as its sender would send it.
 * @throws {CniError} 7 where it cannot enter on this node, or the ends have no common address family
 */
export function packetOf(journey: Journey, ports: readonly SwitchPort[]): Packet {
  const { client, server, protocol, isReply, fromTunnel, as } = journey;
  const [sender, receiver] = isReply ? [server, client] : [client, server];
  const [sourceIp, destinationIp] = addressesOf(sender, receiver);
  if (as.ip !== undefined && as.ip.family !== destinationIp.family) throw differentFamilies([as.ip], [destinationIp]);
  const replyTo = client.t === "pod" ? Source.pod : Source.tunnel;
  const common = {
    protocol,
    destination: { ip: destinationIp, mac: macTowards(journey, receiver, ports) },
    ...(isReply ? { replyTo } : {}),
  };
  if (fromTunnel !== undefined) {
    if (sender.t === "pod") {
      const is = `"${formatIp(sourceIp)}" is a pod of this node, and its packets do not come out of the tunnel`;
      throw new CniError(CniCode.invalidConfig, `Cannot ${action}: ${is}, wanted the address of another node's`);
    }
    const { ofport } = portOf("tunnel", ports);
    return {
      ...common,
      inPort: ofport,
      source: { ip: as.ip ?? sourceIp, mac: as.mac ?? virtualMac },
      tunnel: fromTunnel,
    };
  }
  if (sender.t !== "pod") {
    const is = `"${formatIp(sourceIp)}" is no pod of this node, so its packets begin elsewhere`;
    const wanted = 'a pod of this node, or "--from-tunnel NODE" for how its packet goes on here';
    throw new CniError(CniCode.invalidConfig, `Cannot ${action}: ${is}, wanted ${wanted}`);
  }
  const { ofport, mac } = sender.port;
  return { ...common, inPort: ofport, source: { ip: as.ip ?? sourceIp, mac: as.mac ?? mac } };
}

/** Pods of a node are neighbours; everybody else is behind the gateway. */
function macTowards({ isRoutedOnly, fromTunnel }: Journey, receiver: End, ports: readonly SwitchPort[]): string {
  if (fromTunnel !== undefined || isRoutedOnly) return virtualMac;
  return receiver.t === "pod" ? receiver.port.mac : portOf("gateway", ports).mac;
}

function portOf(kind: "gateway" | "tunnel", ports: readonly SwitchPort[]): SwitchPort {
  const found = ports.find((port) => port.kind === kind);
  if (found !== undefined) return found;
  throw new CniError(
    CniCode.invalidConfig,
    `Cannot ${action}: the bridge has no ${kind} port, wanted the one that the agent makes in its mode`,
  );
}

const ipsOf = (end: End): readonly Ip[] => (end.t === "pod" ? end.ips : [end.ip]);

function addressesOf(sender: End, receiver: End): readonly [Ip, Ip] {
  for (const from of ipsOf(sender)) {
    const to = ipsOf(receiver).find(({ family }) => family === from.family);
    if (to === undefined) continue;
    if (sameIp(from, to)) break;
    return [from, to];
  }
  throw differentFamilies(ipsOf(sender), ipsOf(receiver));
}

function differentFamilies(...ends: readonly (readonly Ip[])[]): CniError {
  const shown = ends.map((ips) => `"${ips.map(formatIp).join(",")}"`).join(" and ");
  const is = `the ends have the addresses ${shown}`;
  return new CniError(CniCode.invalidConfig, `Cannot ${action}: ${is}, wanted two different ones of one family`);
}
