import { formatIp } from "../../../shared/net/ip.ts";
import { formatTable } from "../../../shared/terminal/table.ts";
import { tableRoles } from "../../datapath/ovs/pipeline/vocabulary.ts";
import type { End, Journey, Packet, Protocol } from "./packet.ts";
import { podName } from "./switch-ports.ts";
import type { Step, Verdict } from "./verdict.ts";

/** The traced path of a packet. */
export interface Report {
  readonly journey: Journey;
  readonly packet: Packet;
  /** Name of the port where it came in. */
  readonly inPort: string;
  readonly steps: readonly Step[];
  readonly verdict: Verdict;
  /** The command that continues on the next node; absent if the path ended here. */
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

/** A table in which nothing was decided only passed the packet on. */
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
  peer: "sent into the tunnel to one node, by port",
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
