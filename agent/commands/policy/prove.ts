import { formatIp } from "../../../shared/net/ip.ts";
import { paths } from "../../../shared/os/paths.ts";
import { reasonOf } from "../../../shared/reason.ts";
import { readConfig } from "../trace/agent-files.ts";
import type { Journey, Protocol } from "../trace/packet.ts";
import { verdictText } from "../trace/report.ts";
import { findPod, readPorts } from "../trace/switch-ports.ts";
import { traceJourney } from "../trace/trace-command.ts";
import type { Verdict } from "../trace/verdict.ts";
import type { Why } from "./why.ts";

/** What the switch of this node does with such a packet. */
export type Proof =
  | { readonly t: "agrees" | "differs"; readonly says: string }
  /** It cannot be tried here, or the packet does not come to where policies are enforced. */
  | { readonly t: "none"; readonly why: string };

interface Where {
  /** Absent: the usual place. */
  readonly config: string | undefined;
  readonly control: string | undefined;
}

/** Traces the packet through Open vSwitch, on the node of the sender. */
export async function proveByTrace({ cases }: Why, where: Where): Promise<Proof> {
  const [only] = cases;
  const protocol = protocolOf(only?.traffic);
  if (only === undefined || cases.length > 1 || protocol === undefined)
    return { t: "none", why: "a trace is of one packet: wanted one destination, and --port with TCP or UDP, or ICMP" };
  const { source, destination, egress, ingress } = only.explanation;
  const [from, to] = [source.endpoint.ip, destination.endpoint.ip];
  if (from === undefined || to === undefined) return { t: "none", why: "a pod has no address yet" };
  try {
    const config = await readConfig(where.config ?? paths.agentConfig);
    const ports = await readPorts(config.ovs.database, config.bridge);
    const [client, server] = [findPod(ports, formatIp(from)), findPod(ports, formatIp(to))];
    if (client.t !== "pod")
      return { t: "none", why: `${source.name} is no pod of this node, wanted the node where it is` };
    if (server.t !== "pod" && server.t !== "address") return { t: "none", why: "the destination has no address" };
    const isRoutedOnly = config.ovs.mode === "networkPolicyOnly";
    const as = { ip: undefined, mac: undefined };
    const journey: Journey = { client, server, protocol, isReply: false, fromTunnel: undefined, as, isRoutedOnly };
    const { report } = await traceJourney(config, journey, ports, where.control);
    if (report === undefined) return { t: "none", why: "ovs-vswitchd shows no packet's way" };
    // What another node's pod receives is judged there.
    const allowed = egress.t !== "denied" && (server.t !== "pod" || ingress.t !== "denied");
    return proofOf(report.verdict, allowed, server.t === "pod" ? "" : ", as far as this node enforces");
  } catch (caught) {
    return { t: "none", why: reasonOf(caught) };
  }
}

function protocolOf(traffic: Why["cases"][number]["traffic"]): Protocol | undefined {
  if (traffic?.protocol === "ICMP") return { t: "icmp" };
  const t = traffic?.protocol.toLowerCase();
  return (t === "tcp" || t === "udp") && traffic?.port !== undefined ? { t, port: traffic.port } : undefined;
}

const policyTables = /^(Egress|Ingress)(Rule|DefaultRule|Metric)$/;

/** @param allowed as policies say for what this node enforces */
export function proofOf(verdict: Verdict, allowed: boolean, bounds: string): Proof {
  const says = `${verdictText(verdict)}${bounds}`;
  const isDropped = verdict.t === "dropped";
  if (isDropped && !policyTables.test(verdict.table)) return { t: "none", why: `${says}, which is not about policies` };
  return { t: isDropped !== allowed ? "agrees" : "differs", says };
}
