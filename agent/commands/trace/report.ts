import { formatIp } from "../../../shared/net/ip.ts";
import { formatTable } from "../../../shared/terminal/table.ts";
import { readCookie, type TableName, tableRoles, tables } from "../../datapath/ovs/pipeline/vocabulary.ts";
import type { End, Journey, Packet, Protocol } from "./packet.ts";
import { podName } from "./switch-ports.ts";
import type { Hop, Pass } from "./trace-text.ts";
import type { Verdict } from "./verdict.ts";
import { decisionWords, matchWords, type PortName } from "./words.ts";

/** What is told of a packet's way. */
export interface Report {
  readonly journey: Journey;
  readonly packet: Packet;
  /** Name of the port where it came in. */
  readonly inPort: string;
  readonly steps: readonly Step[];
  readonly verdict: Verdict;
  /** The command that goes on on the node where it went; absent where it ended here. */
  readonly next?: string;
}

export function reportText({ journey, packet, inPort, steps, verdict, next }: Report): string {
  const rows = steps.map((step) => [String(step.table).padStart(3), step.name, flowText(step), decidedText(step)]);
  const table = formatTable([["  #", "TABLE", "FLOW (PRIORITY)", "DECIDED"], ...rows]);
  const remark = "remark" in verdict && verdict.remark !== undefined ? `  (${verdict.remark})\n` : "";
  const onwards = next === undefined ? "" : `to go on there, run on that node:\n  ${next}\n`;
  return `${headText(journey, packet, inPort)}\n\n${table}\n${verdictText(verdict)}\n${remark}${onwards}`;
}

/** The same for programs; whole numbers and texts only. */
export function reportObject({ journey, packet, inPort, steps, verdict, next }: Report): unknown {
  const { source, destination, tunnel, protocol } = packet;
  const ends = { client: endText(journey.client), server: endText(journey.server), reply: journey.isReply };
  const way = { protocol: protocol.t, ...(protocol.t === "icmp" ? {} : { port: protocol.port }), inPort };
  return {
    ...ends,
    packet: {
      ...way,
      source: { ip: formatIp(source.ip), mac: source.mac },
      destination: { ip: formatIp(destination.ip), mac: destination.mac },
      ...(tunnel === undefined ? {} : { tunnel: { from: formatIp(tunnel.from), key: tunnel.key } }),
    },
    steps,
    verdict: { ...verdict, text: verdictText(verdict) },
    ...(next === undefined ? {} : { next }),
  };
}

const endText = (end: End): string => (end.t === "pod" ? podName(end.port) : formatIp(end.ip));

function headText({ client, server, isReply, fromTunnel }: Journey, packet: Packet, inPort: string): string {
  const [from, to] = isReply ? [server, client] : [client, server];
  const name = (end: End): string => (end.t === "pod" ? `pod ${podName(end.port)}` : formatIp(end.ip));
  const came = fromTunnel === undefined ? "" : `, through the tunnel from node ${formatIp(fromTunnel.from)}`;
  const ips = `${formatIp(packet.source.ip)} to ${formatIp(packet.destination.ip)}`;
  return `${name(from)} to ${name(to)}: ${protocolText(packet.protocol, isReply)}, ${ips}, in by port ${inPort}${came}`;
}

function protocolText(protocol: Protocol, isReply: boolean): string {
  if (protocol.t === "icmp") return isReply ? "ICMP echo reply" : "ICMP echo request, a connection's first packet";
  const name = protocol.t.toUpperCase();
  return isReply
    ? `answer from ${name} port ${protocol.port}`
    : `${name} to port ${protocol.port}, a connection's first packet`;
}

const flowText = ({ flow }: Step): string =>
  flow === undefined ? "no flow matched" : `${flow.matchInWords} (${flow.priority})`;

/** Where nothing was decided the packet only went on. */
const decidedText = ({ decided }: Step): string => (decided.length === 0 ? "goes on" : decided.join("; "));

const nodeText = ({ node, name }: Extract<Verdict, { t: "tunnel" }>): string =>
  name === undefined ? node : `${name} (${node})`;

const outWords = {
  gateway: "left to the node itself, by the gateway port",
  uplink: "sent to the node's network, by the uplink",
  local: "given to the node itself, by the bridge's own port",
  other: "sent out by port",
  pod: "sent out by port",
  tunnel: "sent into the tunnel, by port",
} as const;

export function verdictText(verdict: Verdict): string {
  switch (verdict.t) {
    case "delivered":
      return `delivered to pod ${verdict.pod} by port ${verdict.port}`;
    case "tunnel":
      return `sent through the tunnel (port ${verdict.port}, key ${verdict.key}) to node ${nodeText(verdict)}`;
    case "out":
      return `${outWords[verdict.to]} ${verdict.port}`;
    case "dropped": {
      const role = Object.entries(tableRoles).find(([name]) => name === verdict.table)?.[1];
      return `dropped in table ${verdict.table}${role === undefined ? "" : `, which ${role}`}: ${verdict.reason}`;
    }
  }
}

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
