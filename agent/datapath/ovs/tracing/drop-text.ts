import type { TraceComponent } from "../../../../shared/documents/mod.ts";
import { formatIp } from "../../../../shared/net/ip.ts";
import type { Direction } from "../../../../shared/policy/mod.ts";
import { registers } from "../pipeline/registers.ts";
import { type TableName, tables } from "../pipeline/tables.ts";
import type { Observation } from "./observation.ts";
import type { TraceNames } from "./steps.ts";

interface Drop {
  readonly table: TableName;
  readonly component: TraceComponent;
  /** Of the policies that refuse it. */
  readonly direction?: Direction;
  readonly text: string;
}

/** `+inv` of ct_state. */
const invalid = 0x10n;

type Say = (seen: Observation, names: TraceNames) => string;

const to = ({ ends: { destination, ports } }: Observation): string =>
  ports === undefined ? formatIp(destination) : `${formatIp(destination)}, port ${ports.destination},`;

/** Why a table drops. It says what the table looks for: which of its flows it was, the switch does not tell. */
const reasons: Readonly<Partial<Record<TableName, readonly [TraceComponent, Say]>>> = {
  PipelineRootClassifier: ["forwarding", () => "it has a VLAN tag, or is of a family that pods do not have"],
  Classifier: ["forwarding", () => "the port has no flows: the agent has not programmed it"],
  SpoofGuard: [
    "spoofGuard",
    (seen, { port }) =>
      `port ${port(Number(seen.field("in_port") ?? 0n)).name} may not send from ${formatIp(seen.ends.source)}`,
  ],
  PacketGuard: ["packetGuard", () => "no pod may send such packets"],
  ConntrackZone: ["connectionTracking", () => "it is of no family that is tracked"],
  ConntrackState: [
    "connectionTracking",
    (seen) =>
      ((seen.field("ct_state") ?? 0n) & invalid) !== 0n
        ? "connection tracking takes it for a packet that no connection has"
        : "the pod opens more connections a second than it may",
  ],
  PreRoutingClassifier: [
    "loadBalancing",
    (seen) => `the service at ${to(seen)} is not for ${formatIp(seen.ends.source)}: it is in none of its source ranges`,
  ],
  ServiceLB: [
    "loadBalancing",
    (seen) => `no service of this protocol has ${to(seen)} or it has no endpoint on this node`,
  ],
  EndpointDNAT: ["loadBalancing", (seen) => `the service at ${to(seen)} has no endpoint`],
  EgressRule: ["policy", () => "the connection was cut, since no rule of a network policy allows it any more"],
  EgressMetric: ["policy", (seen) => `no rule of a network policy lets ${formatIp(seen.ends.source)} send it`],
  L3Forwarding: [
    "routing",
    (seen, { port }) =>
      port(Number(seen.field("in_port") ?? 0n)).kind === "pod"
        ? `no pod of this node has ${formatIp(seen.ends.destination)}, and nobody else is to be reached there`
        : `no pod of this node has ${formatIp(seen.ends.destination)}`,
  ],
  L3DecTTL: ["routing", () => "it has made as many hops as it may"],
  L2ForwardingCalc: ["forwarding", () => "no port has its MAC address, or it looks like a packet of the tunnel"],
  TenantIsolation: [
    "projects",
    (seen) =>
      `other project: the sender's has VNID ${seen.value(registers.sourceTenant)}, the receiver's ${seen.value(registers.destinationTenant)}`,
  ],
  IngressRule: ["policy", () => "the connection was cut, since no rule of a network policy allows it any more"],
  IngressMetric: ["policy", () => "no rule of a network policy lets its destination receive it"],
};

const refusing: Readonly<Partial<Record<TableName, Direction>>> = { EgressMetric: "egress", IngressMetric: "ingress" };

export function dropText(last: Observation, names: TraceNames): Drop {
  const table = tableAt(last.table);
  const [component, say] = reasons[table] ?? ["forwarding", () => "no flow of this table lets it pass"];
  const direction = last.value(registers.refused) === 1 ? refusing[table] : undefined;
  return { table, component, ...(direction === undefined ? {} : { direction }), text: say(last, names) };
}

const tableAt = (number: number): TableName =>
  (Object.entries(tables).find(([, each]) => each === number)?.[0] ?? "Output") as TableName;
