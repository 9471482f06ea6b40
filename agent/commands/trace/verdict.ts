import { contains, formatIp, type Ip, sameIp } from "../../../shared/net/ip.ts";
import { broadcast, linkLocal6, multicast } from "../../datapath/addresses.ts";
import { Priority, readCookie, type TableName, tableRoles, tables } from "../../datapath/ovs/pipeline/vocabulary.ts";
import type { Journey, Packet } from "./packet.ts";
import type { SwitchPort } from "./switch-ports.ts";
import { type Hop, type Pass, stateAfter, tunnelKey } from "./trace-text.ts";
import { decisionWords, matchWords, type PortName } from "./words.ts";

/** One table on the packet's way. */
export interface Step {
  readonly table: number;
  readonly name: string;
  /** What the table is for. */
  readonly role: string;
  /** Absent where no flow matched. */
  readonly flow?: {
    readonly priority: number;
    /** As ovs-ofctl writes it. */
    readonly match: string;
    readonly matchInWords: string;
    readonly round: number;
    readonly category: number;
  };
  readonly decided: readonly string[];
}

const names = new Map<number, TableName>(Object.entries(tables).map(([name, id]) => [id, name as TableName]));

/** A number where the table is none of ours. */
export const tableName = (table: number): string => names.get(table) ?? String(table);

export function stepsOf(passes: readonly Pass[], port: PortName): readonly Step[] {
  return passes.flatMap(({ hops }) => hops.map((hop) => stepOf(hop, port)));
}

function stepOf({ table, match, priority, cookie, lines }: Hop, port: PortName): Step {
  const { round, category } = readCookie(cookie);
  const name = names.get(table);
  const decided = decisionWords(lines, port);
  return {
    table,
    name: tableName(table),
    role: name === undefined ? "" : tableRoles[name],
    ...(priority === undefined
      ? {}
      : { flow: { priority, match, matchInWords: matchWords(match, port), round, category } }),
    decided,
  };
}

/** The fate of the packet. `remark`: additional information for people. */
export type Verdict =
  | { readonly t: "delivered"; readonly pod: string; readonly port: string; readonly remark?: string }
  | {
      readonly t: "tunnel";
      /** Its address. */
      readonly node: string;
      /** Its name, where this node's agent knows it. */
      readonly name?: string;
      readonly key: number;
      readonly port: string;
      readonly remark?: string;
    }
  | { readonly t: "out"; readonly to: SwitchPort["kind"]; readonly port: string; readonly remark?: string }
  | { readonly t: "dropped"; readonly table: string; readonly reason: string };

interface Sent {
  /** By number, or by name as `--names` shows it. */
  readonly port: string;
  readonly hop: Hop;
  /** Why the output failed, if it did. */
  readonly warning: string | undefined;
}

/** @param passes not empty, the last with the packet's end */
export function verdictOf(passes: readonly Pass[], packet: Packet, ports: readonly SwitchPort[]): Verdict {
  const last = passes.at(-1);
  const sent = passes.flatMap(({ hops }) => hops.flatMap((hop) => sentBy(hop, packet)));
  const gone = sent.findLast(({ warning }) => warning === undefined);
  const isOut = last !== undefined && last.datapathActions !== "drop";
  if (gone !== undefined && (isOut || silentNeighbour(gone.hop) !== undefined))
    return outBy(gone, passes, packet, ports);
  const end = sent.at(-1)?.hop ?? last?.hops.at(-1);
  if (end === undefined) return { t: "dropped", table: "", reason: "Open vSwitch does not tell" };
  const bridge = last?.beyond.at(-1);
  const reason =
    bridge === undefined
      ? dropReason(end, stateAfter(last), packet, ports)
      : `the tunnel's own packet does not get past the bridge "${bridge}"`;
  return { t: "dropped", table: tableName(end.table), reason };
}

function sentBy(hop: Hop, packet: Packet): readonly Sent[] {
  const warning = hop.lines.find(({ t }) => t === "warning")?.text;
  return hop.lines.flatMap(({ t, text }) => {
    const number = t === "note" ? /^output port is (\d+)$/.exec(text)?.[1] : undefined;
    if (number !== undefined) return [{ port: number, hop, warning }];
    if (t !== "action") return [];
    if (text === "IN_PORT") return [{ port: String(packet.inPort), hop, warning }];
    if (text === "LOCAL") return [{ port: "LOCAL", hop, warning }];
    const named = /^output:(?!NXM_)"?([^"]+)"?$/.exec(text)?.[1];
    return named === undefined ? [] : [{ port: named, hop, warning }];
  });
}

function outBy({ port, hop }: Sent, passes: readonly Pass[], packet: Packet, ports: readonly SwitchPort[]): Verdict {
  const found = ports.find(
    ({ name, ofport, kind }) => name === port || String(ofport) === port || (port === "LOCAL" && kind === "local"),
  );
  const name = found?.name ?? port;
  if (found?.pod !== undefined) {
    const pod = found.pod.name ?? found.pod.ips.map(formatIp).join(",");
    return { t: "delivered", pod, port: name };
  }
  const remark = silentNeighbour(hop) ?? (found?.kind === "gateway" ? unknownTo(passes, packet) : undefined);
  const more = remark === undefined ? {} : { remark };
  if (found?.kind !== "tunnel") return { t: "out", to: found?.kind ?? "other", port: name, ...more };
  const state = stateAfter(passes.at(-1));
  const nodes = [...state.matchAll(/tun_(?:ipv6_)?dst=([0-9a-f.:]+)/g)].map(([, text]) => text);
  const node = nodes.find((text) => text !== "0.0.0.0" && text !== "::") ?? "";
  return { t: "tunnel", node, key: tunnelKey(passes), port: name, ...more };
}

/** The data path drops packets to a node whose MAC it does not know yet, and sends ARP for it. */
function silentNeighbour({ lines }: Hop): string | undefined {
  const miss = lines.map(({ text }) => /^neighbor cache miss for (\S+)/.exec(text)?.[1]).find((ip) => ip !== undefined);
  return miss === undefined ? undefined : `nobody has answered ARP for ${miss} yet`;
}

const routedBy = (passes: readonly Pass[]): Hop | undefined =>
  passes.flatMap(({ hops }) => hops).findLast(({ table }) => table === tables.L3Forwarding);

/** Packets that no flow forwards go to the node's kernel: to outside of the cluster, or to an unknown node. */
function unknownTo(passes: readonly Pass[], { destination }: Packet): string | undefined {
  const routed = routedBy(passes);
  if (routed?.priority === undefined || routed.priority > Priority.outside) return undefined;
  return `neither a pod of this node nor a known node's subnet has ${formatIp(destination.ip)}, so the node's kernel routes it`;
}

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

/** Reasons of `PacketGuard`, by what its flows match. */
const refusals: readonly (readonly [RegExp, string])[] = [
  [/(?:nw|ipv6)_(?:src|dst)=/, "a loopback address means nothing outside of a host"],
  [/tp_src=(?:67|547)\b/, "it looks like the answer of a server of DHCP"],
  [/^icmp6,.*icmp_type=0\b/, "its first fragment ends before its message begins"],
  [/^icmp6/, "it is neighbour discovery, or passes for a router's, which nobody may send on"],
  [/^icmp,/, "it is a redirect, and only the switch decides the way"],
  [/nw_proto=/, "it has an IPv6 header behind which the switch does not look"],
];

/** The purpose of flows that drop packets. */
const dropFlows: Partial<Record<TableName, (match: string, packet: Packet) => string | undefined>> = {
  PipelineRootClassifier: (match) =>
    match.includes("vlan_tci") ? "it has a VLAN tag, which only the node's own frames may have" : undefined,
  PacketGuard: (match) => refusals.find(([pattern]) => pattern.test(match))?.[1],
  EgressRule: (match) => cutBy(match),
  EgressMetric: (_, { source: { ip } }) => `no rule of a network policy lets ${formatIp(ip)} send it`,
  IngressRule: (match) => cutBy(match),
  IngressMetric: () => "no rule of a network policy lets its destination receive it",
  L3Forwarding: (match, { destination: { ip } }) => {
    if (contains(multicast[ip.family], ip) || sameIp(broadcast.ip, ip)) return "pods send nothing to groups";
    if (contains(linkLocal6, ip)) return "of link-local addresses the gateway's alone is on a pod's link";
    return /(?:nw|ipv6)_dst=/.test(match) ? `no pod of this node has ${formatIp(ip)}` : undefined;
  },
  L2ForwardingCalc: () => "it looks like a packet of the tunnel, which only nodes may send",
  ConntrackState: (match) =>
    match.includes("+inv") ? "connection tracking takes it for a packet that no connection has" : undefined,
  PreRoutingClassifier: (_, { source, destination: { ip } }) =>
    `the service at ${formatIp(ip)} is not for ${formatIp(source.ip)}: it is in none of its source ranges`,
  EndpointDNAT: (match, { destination: { ip } }) =>
    match.includes("reg0=") ? `the service at ${formatIp(ip)} has no endpoint` : undefined,
  ServiceLB: (match, { destination: { ip } }) => {
    if (/(?:tcp|udp|sctp|tp)_dst=/.test(match))
      return `the service at ${formatIp(ip)} has no endpoint on this node, and asks for one there`;
    return /(?:nw|ipv6)_dst=/.test(match) ? `no service of this protocol and port has ${formatIp(ip)}` : undefined;
  },
};

const cutBy = (match: string): string | undefined =>
  match.includes("ct_label")
    ? "the connection was cut, since no rule of a network policy allows it any more"
    : undefined;

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
  // A flow that matches everything is the table's default.
  const meant = end.match === "" ? undefined : dropFlows[table]?.(end.match, packet);
  if (meant !== undefined) return meant;
  if (end.match !== "") return `flow of priority ${end.priority}: ${matchWords(end.match, port)}`;
  return missReasons[table]?.(packet, state, port) ?? "no flow matched";
}

/** The command that continues the trace on the node at the tunnel's other end; `undefined` if there is none. */
export function nextCommand(
  verdict: Verdict,
  passes: readonly Pass[],
  { isReply, protocol }: Journey,
  nodeAddresses: readonly Ip[],
): string | undefined {
  if (verdict.t !== "tunnel") return undefined;
  const state = stateAfter(passes.at(-1));
  // By now the service's address has been replaced by an endpoint's.
  const field = (names: string): string => new RegExp(`,(?:${names})=([^,]+)`).exec(state)?.[1] ?? "";
  const [from, to] = [field("nw_src|ipv6_src"), field("nw_dst|ipv6_dst")];
  const [client, server] = isReply ? [to, from] : [from, to];
  const port = field(isReply ? "tp_src" : "tp_dst");
  const here = nodeAddresses.find(({ family }) => (family === 6) === verdict.node.includes(":"));
  return [
    `pipette trace ${client} ${server}`,
    `--from-tunnel ${here === undefined ? "ADDRESS-OF-THIS-NODE" : formatIp(here)}`,
    ...(verdict.key === 0 ? [] : [`--tunnel-key ${verdict.key}`]),
    ...(protocol.t === "icmp" ? [] : [`--${protocol.t} ${port}`]),
    ...(isReply ? ["--reply"] : []),
  ].join(" ");
}
