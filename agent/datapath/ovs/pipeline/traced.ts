import type { Cidr, Family, Ip } from "../../../../shared/net/ip.ts";
import {
  type Action,
  bits,
  type Flow,
  load,
  type MatchBuilder,
  match,
  outputTo,
  resubmit,
  setField,
  toController,
} from "../../../protocols/openflow/mod.ts";
import { step } from "./build.ts";
import type { PipelineContext } from "./context.ts";
import { Category, cookieOf } from "./cookie.ts";
import { familiesOf } from "./families.ts";
import { registers } from "./registers.ts";
import { type TableName, tables } from "./tables.ts";

/*
 * Flows of a trace, which there are only while one runs. A register has a bit for each table that a traced packet is
 * still to be reported in; there a flow above all others sends a copy to the agent, clears the bit, and has the packet
 * go through the table as any other. So what is decided is what the ordinary flows decide, and where a packet is not
 * seen any more, the last table that told of it has dropped it. No packet from a port has these bits: they are set by the
 * agent that sends one itself, and by the flows here that pick packets. An injected packet ends where it would leave
 * the node, unless it is sent to a node that looks out for it, and leaves no connection that a table of its own opens.
 */

/** The tables that IP packets pass, in their order; a bit of the register for each. */
export const tracedTables = [
  "PipelineRootClassifier",
  "Classifier",
  "SpoofGuard",
  "PacketGuard",
  "UnSNAT",
  "ConntrackZone",
  "ConntrackState",
  "PreRoutingClassifier",
  "ServiceLB",
  "EndpointDNAT",
  "EgressRule",
  "EgressDefaultRule",
  "EgressMetric",
  "L3Forwarding",
  "L3DecTTL",
  "SNATMark",
  "SNAT",
  "L2ForwardingCalc",
  "TenantIsolation",
  "IngressRule",
  "IngressDefaultRule",
  "IngressMetric",
  "ConntrackCommit",
  "Output",
] as const satisfies readonly TableName[];

const injectedBit = bits("reg15", 31);
const bitOf = (table: (typeof tracedTables)[number]) => bits("reg15", tracedTables.indexOf(table));

/** From this table on, all of them. */
function untoldFrom(table: (typeof tracedTables)[number], isInjected: boolean): bigint {
  const first = tracedTables.indexOf(table);
  const all = (1n << BigInt(tracedTables.length)) - 1n;
  return (all & ~((1n << BigInt(first)) - 1n)) | (isInjected ? 1n << 31n : 0n);
}

/** Above every flow of the pipeline. */
const TracePriority = { report: 65_000, end: 65_001, sendOn: 65_002, pick: 65_010 } as const;
/** Ethernet, IPv6, TCP, and what an injected packet is known by; of IPv6 with extension headers less. */
export const reportedBytes = 160;
const copy: Action = toController(reportedBytes);

/** So long flows stay whose agent has gone; one that runs puts them in again meanwhile. */
export const traceFlowSeconds = 10;

/** Of one trace on this node: its number, from 1 on, tells its packets and flows from those of others. */
export const traceCookie = (round: number, number: number): bigint => cookieOf(round, Category.trace, number);

const cookied = (flows: readonly Flow[], cookie: bigint): Flow[] =>
  flows.map((flow) => ({ ...flow, cookie, hardTimeout: traceFlowSeconds }));

const mine = (number: number, table: (typeof tracedTables)[number]): MatchBuilder =>
  match().bits(registers.trace, number).bits(bitOf(table), 1);

/** Reports the packets of a trace in every table. */
export function reportFlows(round: number, number: number): Flow[] {
  const flows = tracedTables.map((table) =>
    step(table, TracePriority.report, mine(number, table), [copy, load(bitOf(table), 0), resubmit(tables[table])]),
  );
  return cookied(flows, traceCookie(round, number));
}

/** Another node that looks out for the packet. */
export interface LookingNode {
  /** The other end of the tunnel to it; absent: it is not reached by one. */
  readonly tunnel?: Ip;
  readonly subnets: readonly Cidr[];
}

/**
 * What is special about injected packets: they end at the node's ports, and what refuses them does not count.
 * @param tag the DSCP that they get on their way to other nodes
 */
export function injectedFlows(context: PipelineContext, { round, number, tag, through }: Injected): Flow[] {
  const injected = (table: (typeof tracedTables)[number]): MatchBuilder => mine(number, table).bits(injectedBit, 1);
  const { gateway, tunnel, uplink } = context;
  const leaving = (family: Family, ofport: number): MatchBuilder =>
    injected("Output").family(family).bits(registers.output, 1).bits(registers.outputPort, ofport);
  const away: readonly Action[] = [copy, setField("ip_dscp", tag), outputTo(registers.outputPort)];
  const inside = (matched: MatchBuilder, cidr: Cidr): MatchBuilder =>
    matched.cidr(cidr.ip.family === 4 ? "ip_dst" : "ipv6_dst", cidr);
  const ends = [tunnel?.ofport, gateway.ofport, uplink?.ofport].filter((ofport) => ofport !== undefined);
  const flows = [
    ...(["EgressMetric", "IngressMetric"] as const).map((table) =>
      step(table, TracePriority.end, injected(table).bits(registers.refused, 1), [copy]),
    ),
    step("ConntrackCommit", TracePriority.end, injected("ConntrackCommit"), [
      ...[copy, load(bitOf("ConntrackCommit"), 0), resubmit(tables.Output)],
    ]),
    step("Output", TracePriority.end, injected("Output"), [copy]),
    ...through.flatMap((node) => [
      ...(node.tunnel === undefined || tunnel === undefined
        ? []
        : familiesOf(context).map((family) => {
            const end = node.tunnel as Ip;
            const matched = leaving(family, tunnel.ofport).set(end.family === 4 ? "tun_dst" : "tun_ipv6_dst", end);
            return step("Output", TracePriority.sendOn, matched, away);
          })),
      ...node.subnets.flatMap((subnet) =>
        ends
          .filter((ofport) => ofport !== tunnel?.ofport)
          .map((ofport) =>
            step("Output", TracePriority.sendOn, inside(leaving(subnet.ip.family, ofport), subnet), away),
          ),
      ),
    ]),
  ];
  return cookied(distinct(flows), traceCookie(round, number));
}

interface Injected {
  readonly round: number;
  readonly number: number;
  readonly tag: number;
  readonly through: readonly LookingNode[];
}

/** Two nodes may name one subnet where a record is wrong. */
function distinct(flows: readonly Flow[]): readonly Flow[] {
  const seen = new Set<string>();
  return flows.filter(({ table, priority, match: { fields } }) => {
    const place = `${table} ${priority} ${fields.map(({ field, value, mask }) => `${field.name}=${value}/${mask}`).join()}`;
    return !seen.has(place) && seen.add(place).size > 0;
  });
}

/** What the agent does to a packet that it sends as if a pod had sent it. */
export const injection = (number: number): readonly Action[] => [
  load(registers.trace, number),
  load(registers.untold, untoldFrom("PipelineRootClassifier", true)),
  resubmit(tables.PipelineRootClassifier),
];

export type TransportName = "icmp" | "tcp" | "udp";

/** What is known of packets that are to be picked; what is absent may be anything. */
export interface Picked {
  readonly family: Family;
  readonly inPort?: number;
  readonly source?: Ip;
  readonly destination?: Ip;
  readonly protocol?: TransportName;
  readonly sourcePort?: number;
  readonly destinationPort?: number;
  readonly tag?: number;
}

function matching(picked: Picked, matched: MatchBuilder): MatchBuilder {
  const { family, protocol, inPort, source, destination, sourcePort, destinationPort, tag } = picked;
  if (protocol === undefined) matched.family(family);
  else matched.protocol(family === 4 ? protocol : `${protocol}6`);
  if (inPort !== undefined) matched.set("in_port", inPort);
  if (source !== undefined) matched.source(source);
  if (destination !== undefined) matched.destination(destination);
  if (protocol !== undefined && protocol !== "icmp" && sourcePort !== undefined)
    matched.set(`${protocol}_src`, sourcePort);
  if (protocol !== undefined && protocol !== "icmp" && destinationPort !== undefined)
    matched.set(`${protocol}_dst`, destinationPort);
  return tag === undefined ? matched : matched.set("ip_dscp", tag);
}

/** Picks injected packets that come from other nodes. */
export function arrivalFlows(
  { tunnel, gateway, uplink }: PipelineContext,
  round: number,
  number: number,
  picked: Picked,
): Flow[] {
  const ports = [tunnel?.ofport, gateway.ofport, uplink?.ofport].filter((ofport) => ofport !== undefined);
  const flows = ports.map((inPort) =>
    step(
      "PipelineRootClassifier",
      TracePriority.pick + number,
      matching({ ...picked, inPort }, match().bits(registers.untold, 0)),
      [
        load(registers.trace, number),
        load(registers.untold, untoldFrom("PipelineRootClassifier", true)),
        resubmit(tables.PipelineRootClassifier),
      ],
    ),
  );
  return cookied(flows, traceCookie(round, number));
}

/**
 * Picks the first packets of real connections, and those that no connection has: with the address that the sender asks
 * for, and behind the services with that of an endpoint.
 */
export function pickFlows(round: number, number: number, picked: Picked): Flow[] {
  const pick = (table: "ConntrackState" | "EgressRule", state: string): Flow =>
    step(table, TracePriority.pick + number, matching(picked, match().bits(registers.untold, 0).ctState(state)), [
      load(registers.trace, number),
      load(registers.untold, untoldFrom(table, false)),
      resubmit(tables[table]),
    ]);
  const flows = [
    pick("ConntrackState", "+new+trk"),
    pick("ConntrackState", "+inv+trk"),
    ...(picked.destination === undefined && picked.destinationPort === undefined
      ? []
      : [pick("EgressRule", "+new+trk")]),
  ];
  return cookied(flows, traceCookie(round, number));
}
