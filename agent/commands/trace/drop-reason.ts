import { contains, formatIp, sameIp } from "../../../shared/net/ip.ts";
import { broadcast, linkLocal6, multicast } from "../../datapath/addresses.ts";
import type { TableName } from "../../datapath/ovs/pipeline/vocabulary.ts";
import type { Packet } from "./packet.ts";
import { tableName } from "./steps.ts";
import type { SwitchPort } from "./switch-ports.ts";
import type { Hop } from "./trace-text.ts";
import { matchWords, type PortName } from "./words.ts";

type Reason = (packet: Packet, state: string, port: PortName) => string;

/** Why a packet that no flow takes ends in a table. */
const missReasons: Partial<Record<TableName, Reason>> = {
  PipelineRootClassifier: () => "it is neither ARP nor IP of a family that is used",
  ARPSpoofGuard: (packet, _, port) => spoofed(packet, port),
  SpoofGuard: (packet, _, port) => spoofed(packet, port),
  Classifier: ({ inPort }, _, port) => `no flow knows port ${port(inPort)}: the agent has not programmed it`,
  L3Forwarding: ({ destination }) =>
    `no flow leads to ${formatIp(destination.ip)}: no node has this address in its subnet`,
  L2ForwardingCalc: (_, state) => `no port has MAC ${/dl_dst=([0-9a-f:]+)/.exec(state)?.[1] ?? "of the destination"}`,
  TenantIsolation: (_, state) => otherProject(state),
  Output: () => "no table before has chosen a port",
};

/** Of `PacketGuard`, by what its flows match. */
const refusals: readonly (readonly [RegExp, string])[] = [
  [/(?:nw|ipv6)_(?:src|dst)=/, "a loopback address means nothing outside of a host"],
  [/tp_src=(?:67|547)\b/, "it looks like the answer of a server of DHCP"],
  [/^icmp6,.*icmp_type=0\b/, "its first fragment ends before its message begins"],
  [/^icmp6/, "it is neighbour discovery, or passes for a router's, which nobody may send on"],
  [/^icmp,/, "it is a redirect, and only the switch decides the way"],
  [/nw_proto=/, "it has an IPv6 header behind which the switch does not look"],
];

/** What flows are for that drop what they take. */
const dropFlows: Partial<Record<TableName, (match: string, packet: Packet) => string | undefined>> = {
  PipelineRootClassifier: (match) =>
    match.includes("vlan_tci") ? "it has a VLAN tag, which only the node's own frames may have" : undefined,
  PacketGuard: (match) => refusals.find(([pattern]) => pattern.test(match))?.[1],
  L3Forwarding: (match, { destination: { ip } }) => {
    if (contains(multicast[ip.family], ip) || sameIp(broadcast.ip, ip)) return "pods send nothing to groups";
    if (contains(linkLocal6, ip)) return "of link-local addresses the gateway's alone is on a pod's link";
    return /(?:nw|ipv6)_dst=/.test(match) ? `no pod of this node has ${formatIp(ip)}` : undefined;
  },
  L2ForwardingCalc: () => "it looks like a packet of the tunnel, which only nodes may send",
  ConntrackState: (match) =>
    match.includes("+inv") ? "connection tracking takes it for a packet that no connection has" : undefined,
  ServiceLB: (match, { destination: { ip } }) => {
    if (/(?:tcp|udp|sctp|tp)_dst=/.test(match)) return `the service at ${formatIp(ip)} has no endpoint`;
    return /(?:nw|ipv6)_dst=/.test(match) ? `no service of this protocol and port has ${formatIp(ip)}` : undefined;
  },
};

const spoofed = ({ source, inPort }: Packet, port: PortName): string =>
  `spoof guard: port ${port(inPort)} may not send from ${formatIp(source.ip)} with MAC ${source.mac}`;

function otherProject(state: string): string {
  const vnid = (register: number): string =>
    String(Number(new RegExp(`reg${register}=(0x[0-9a-f]+)`).exec(state)?.[1] ?? 0));
  return `other project: the sender's has VNID ${vnid(10)}, the receiver's ${vnid(11)}`;
}

/** @param end the last table that the packet came to; `state` the packet as it was then, in ovs-ofctl's words */
export function dropReason(end: Hop, state: string, packet: Packet, ports: readonly SwitchPort[]): string {
  const port: PortName = (ofport) => ports.find((each) => each.ofport === ofport)?.name ?? String(ofport);
  const warning = end.lines.find(({ t }) => t === "warning")?.text;
  if (warning !== undefined) return warning;
  const table = tableName(end.table) as TableName;
  // A flow that takes everything is the table's last word on what no other flow wanted.
  const meant = end.match === "" ? undefined : dropFlows[table]?.(end.match, packet);
  if (meant !== undefined) return meant;
  if (end.match !== "") return `flow of priority ${end.priority}: ${matchWords(end.match, port)}`;
  return missReasons[table]?.(packet, state, port) ?? "no flow matched";
}
