import { type Ip, sameIp } from "../../../../shared/net/ip.ts";
import type { Direction } from "../../../../shared/policy/mod.ts";
import {
  type Action,
  ct,
  ctClear,
  type Flow,
  load,
  type MatchBuilder,
  match,
  meter,
  move,
  resubmit,
  toController,
} from "../../../protocols/openflow/mod.ts";
import type { LoggedVerdicts } from "../../policies.ts";
import { Priority, step } from "./build.ts";
import { rememberSource } from "./connections.ts";
import type { PipelineContext } from "./context.ts";
import { familiesOf } from "./families.ts";
import { connectionLabels, connectionMarks, registers, Source, zones } from "./registers.ts";
import { answered, datagram, rejudgingFlows } from "./rejudging.ts";
import { tables } from "./tables.ts";

/*
 * Network policies. The asking side's packets are judged: by the conjunctive flows of rules where the pod is isolated.
 * A rule that lets one pass leaves its label on the connection, in the half of its direction, and further packets pass
 * by the label alone, answers too. A rule's label changes whenever the rule comes to allow less (`PolicyFlows`), so that
 * open connections are judged once more by what holds now, at their next packet. If no rule allows that one any more,
 * the connection is labelled as cut, and its answers are dropped too. Where nobody asks any more: see `rejudging.ts`.
 */

/** The label of a connection of which a packet was refused. */
const cut = (1n << 64n) - 1n;

/** The tables and registers of one direction. */
const stages = {
  egress: {
    rule: "EgressRule",
    fallback: "EgressDefaultRule",
    metric: "EgressMetric",
    next: "L3Forwarding",
    label: connectionLabels.egress,
    judged: registers.egressJudged,
    ruleNumber: registers.egressRule,
    ruleLabel: registers.egressLabel,
  },
  ingress: {
    rule: "IngressRule",
    fallback: "IngressDefaultRule",
    metric: "IngressMetric",
    next: "ConntrackCommit",
    label: connectionLabels.ingress,
    judged: registers.ingressJudged,
    ruleNumber: registers.ingressRule,
    ruleLabel: registers.ingressLabel,
  },
} as const;

/**
 * Where verdicts are reported, a copy of a packet goes to whoever listens: where it is refused, or where its connection
 * gets the label of a rule. One meter bounds how many. Its number is no port's.
 */
export const verdictMeter = meter({ id: 32_768, unit: "pktps", rate: 100, burst: 200 });
/** Ethernet, IPv6 with some extension headers, and TCP's ports. */
const reportedBytes = 128;
const report: Action = toController(reportedBytes, verdictMeter.id);

/** The tables in which policies alone have flows. */
export const policyTables: readonly number[] = Object.values(stages).flatMap(({ rule, fallback, metric }) => [
  tables[rule],
  tables[fallback],
  tables[metric],
]);

const directions: readonly Direction[] = ["egress", "ingress"];

/** What there is beside rules and isolated pods, as soon as there is any of these. */
export const policyFlows = (context: PipelineContext, reported: LoggedVerdicts = "off"): Flow[] => [
  ...directions.flatMap((direction) => [
    ...answerFlows(direction),
    ...refusalFlows(context, direction, reported === "off" ? [] : [report]),
  ]),
  ...exemptFlows(context),
  ...sctpFlows(context),
  ...rejudgingFlows(context),
  ...labelFlows(context, reported === "all" ? [report] : []),
];

/** Answers, and ICMP errors about a connection, follow the connection, unless that was cut. */
function answerFlows(direction: Direction): Flow[] {
  const { rule, fallback, next, label, judged, ruleLabel } = stages[direction];
  return [
    step(rule, Priority.high, match().ctState("+rpl+trk").bits(label, cut), []),
    step(rule, Priority.answer, match().ctState("+rpl+trk"), [], next),
    step(rule, Priority.answer, match().ctState("+rel-rpl+trk"), [], next),
    // The pod's isolation has ended.
    step(
      fallback,
      Priority.low,
      match().ctState("-rpl+trk").bits(label, cut),
      [load(judged, 1), load(ruleLabel, 0)],
      next,
    ),
  ];
}

/** A refused packet that opens a connection leaves none; one of a known connection cuts it. */
function refusalFlows(context: PipelineContext, direction: Direction, reports: readonly Action[]): Flow[] {
  const { metric, label } = stages[direction];
  const refused = () => match().bits(registers.refused, 1);
  return [
    step(metric, Priority.high, refused().bits(connectionMarks.source, 0), reports),
    ...familiesOf(context).map((family) =>
      step(metric, Priority.guard, refused().family(family), [
        ...reports,
        ct({ commit: true, zone: zones[family].main, exec: [load(label, cut)] }),
      ]),
    ),
  ];
}

/**
 * The node reaches its own pods, as probes do, and a pod reaches itself through a service. Packets to services that the
 * node's kernel translates come back with an endpoint's address, and are judged then.
 */
function exemptFlows({ gateway, nodeAddresses, kernelServices = [] }: PipelineContext): Flow[] {
  const { rule, next } = stages.ingress;
  const own = [...gateway.addresses, ...nodeAddresses.map(({ ip }) => ip)];
  const distinct = own.filter((ip, i) => own.findIndex((other) => sameIp(other, ip)) === i);
  return [
    ...kernelServices.map((cidr) =>
      step(
        stages.egress.rule,
        Priority.high,
        match()
          .family(cidr.ip.family)
          .ctState("-rpl+trk")
          .cidr(cidr.ip.family === 4 ? "ip_dst" : "ipv6_dst", cidr),
        [],
        stages.egress.next,
      ),
    ),
    step(rule, Priority.high, match().bits(connectionMarks.hairpin, 1), [], next),
    ...distinct.map((ip) =>
      step(rule, Priority.high, match().family(ip.family).bits(registers.source, Source.gateway).source(ip), [], next),
    ),
    ...distinct.map((ip) =>
      step(rule, Priority.high, match().family(ip.family).ctState("+rpl+trk").destination(ip), [], next),
    ),
  ];
}

/**
 * Where all SCTP between two addresses is one connection, a rule for one port would let the others pass, and a question
 * would pass as an answer. So each packet is judged for itself, answers too.
 */
const sctpFlows = (context: PipelineContext): Flow[] =>
  context.joinsSctp !== true
    ? []
    : familiesOf(context).map((family) =>
        step(
          stages.egress.rule,
          Priority.untracked,
          match()
            .protocol(family === 4 ? "sctp" : "sctp6")
            .ctState("+trk"),
          [ctClear, resubmit(tables.EgressRule)],
        ),
      );

/** In place of the usual commit, where a rule was looked up for the packet. */
const labelFlows = (context: PipelineContext, reports: readonly Action[]): Flow[] =>
  familiesOf(context).flatMap((family) =>
    [[stages.egress], [stages.ingress], [stages.egress, stages.ingress]].map((judging) => {
      const judged = match().family(family).ctState("+trk-snat");
      for (const { judged: bit } of Object.values(stages))
        judged.bits(bit, judging.some((one) => one.judged === bit) ? 1 : 0);
      const labels = judging.map(({ ruleLabel, label }) => move(ruleLabel, label));
      return step("ConntrackCommit", Priority.high, judged, [
        ...reports,
        ct({ commit: true, table: tables.Output, zone: zones[family].main, exec: [rememberSource, ...labels] }),
      ]);
    }),
  );

/** One rule, by the number of its conjunctive match. */
export interface RuleInForce {
  readonly direction: Direction;
  readonly number: number;
  readonly label: bigint;
}

/** What a rule does to packets that match all of its clauses, and to further packets of their connections. */
export function ruleFlows({ direction, number, label }: RuleInForce): Flow[] {
  const { rule, metric, next, label: half, judged, ruleNumber, ruleLabel } = stages[direction];
  const counted = () => match().set(ruleNumber.field.name, number);
  return [
    step(rule, Priority.high, match().bits(half, label), [load(ruleNumber, number)], metric),
    step(
      rule,
      Priority.low,
      match().set("conj_id", number),
      [load(ruleNumber, number), load(judged, 1), load(ruleLabel, label)],
      metric,
    ),
    // A connection's first packet.
    step(metric, Priority.normal, counted().bits(judged, 1).ctState("+new+trk"), [], next),
    step(metric, Priority.low, counted(), [], next),
  ];
}

/** A flow that clauses of rules share; its actions are theirs. */
export const matchFlow = (direction: Direction, matched: MatchBuilder): Flow =>
  step(stages[direction].rule, Priority.normal, matched, []);

/** What closes a direction of a pod, but for what rules allow. */
export function isolationFlows(
  direction: Direction,
  { ofport, ips }: { readonly ofport: number; readonly ips: readonly Ip[] },
): Flow[] {
  const { rule, fallback, metric, next } = stages[direction];
  const refuse = (matched: MatchBuilder): Flow =>
    step(fallback, Priority.normal, matched, [load(registers.refused, 1)], metric);
  const rejudge = (matched: MatchBuilder): Flow =>
    step(rule, Priority.guard, answered(matched), [load(registers.rejudge, 1)], next);
  if (direction === "ingress") {
    const families = [...new Set(ips.map(({ family }) => family))];
    return [
      refuse(match().bits(registers.outputPort, ofport)),
      ...families.map((family) => rejudge(datagram(family).set("in_port", ofport))),
    ];
  }
  return ips.flatMap((ip) => [
    refuse(match().family(ip.family).source(ip)),
    rejudge(datagram(ip.family).destination(ip)),
    // To itself, through a service.
    step(rule, Priority.high, match().family(ip.family).source(ip).destination(ip), [], next),
  ]);
}
