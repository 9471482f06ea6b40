import { formatIp, ipOf } from "../../../../shared/net/ip.ts";
import { isWindows } from "../../../../shared/os/platform.ts";
import type { Direction } from "../../../../shared/policy/mod.ts";
import { type Flow, OpenFlowClient, parseAddress } from "../../../protocols/openflow/mod.ts";
import type { DeniedCount, PolicyEnforcement, RuleCount } from "../../policies.ts";
import { registers } from "../pipeline/registers.ts";
import { tables } from "../pipeline/tables.ts";
import type { PolicyFlows } from "./policy-flows.ts";

export type Counts = Awaited<ReturnType<PolicyEnforcement["counts"]>>;

const places = {
  egress: {
    metric: tables.EgressMetric,
    fallback: tables.EgressDefaultRule,
    rule: registers.egressRule,
    judged: registers.egressJudged,
  },
  ingress: {
    metric: tables.IngressMetric,
    fallback: tables.IngressDefaultRule,
    rule: registers.ingressRule,
    judged: registers.ingressJudged,
  },
} as const;

/** @throws {OpenFlowError} */
export async function readCounts(management: string, flows: PolicyFlows): Promise<Counts> {
  using client = await OpenFlowClient.connect(parseAddress(management, isWindows));
  const rules = new Map<string, RuleCount>();
  const denied: DeniedCount[] = [];
  for (const direction of ["egress", "ingress"] as const) {
    const { metric, fallback } = places[direction];
    for (const { flow, counters } of await client.flows({ table: metric })) {
      const id = flows.ruleOf(Number(fieldOf(flow, places[direction].rule.field.name)))?.id;
      if (id === undefined) continue;
      const [packets, bytes] = [Number(counters.packets ?? 0), Number(counters.bytes ?? 0)];
      // A packet that was looked up opens a connection.
      const opened = fieldOf(flow, places[direction].judged.field.name) === undefined ? 0 : packets;
      const { packets: p, bytes: b, sessions } = rules.get(id) ?? { packets: 0, bytes: 0, sessions: 0 };
      rules.set(id, { id, packets: p + packets, bytes: b + bytes, sessions: sessions + opened });
    }
    const refusing = await client.flows({ table: fallback });
    denied.push(...deniedCounts(direction, flows, refusing));
  }
  return { rules: [...rules.values()], denied };
}

function deniedCounts(
  direction: Direction,
  flows: PolicyFlows,
  refusing: Awaited<ReturnType<OpenFlowClient["flows"]>>,
): DeniedCount[] {
  const found = new Map(refusing.map(({ flow, counters }) => [subjectOf(flow), counters]));
  return [...flows.isolated()].flatMap(([{ owner, directions }, { ofport, ips }]) => {
    if (!directions.includes(direction)) return [];
    const counters = [String(ofport), ...ips.map(formatIp)].flatMap((subject) => found.get(subject) ?? []);
    const sum = (of: "packets" | "bytes"): number => counters.reduce((total, one) => total + Number(one[of] ?? 0), 0);
    return [{ owner, direction, packets: sum("packets"), bytes: sum("bytes") }];
  });
}

/** Whose packets the flow refuses: a port's, or an address's. */
function subjectOf(flow: Flow): string {
  const port = fieldOf(flow, registers.outputPort.field.name);
  if (port !== undefined) return String(port);
  const [ip4, ip6] = [fieldOf(flow, "ip_src"), fieldOf(flow, "ipv6_src")];
  return ip4 !== undefined ? formatIp(ipOf(4, ip4)) : ip6 !== undefined ? formatIp(ipOf(6, ip6)) : "";
}

const fieldOf = ({ match }: Flow, name: string): bigint | undefined =>
  match.fields.find(({ field }) => field.name === name)?.value;
