import type { Family } from "../../../../shared/net/ip.ts";
import {
  type Action,
  bits,
  ctClear,
  type Flow,
  load,
  type MatchBuilder,
  match,
  move,
  outputTo,
  resubmit,
  whole,
} from "../../../protocols/openflow/mod.ts";
import { Priority, step } from "./build.ts";
import type { PipelineContext } from "./context.ts";
import { familiesOf } from "./families.ts";
import { connectionMarks, registers } from "./registers.ts";
import { tables } from "./tables.ts";

/*
 * Connections of which the asking side is silent, as in a stream of datagrams that was asked for once: no packet comes
 * that a changed policy could be applied to. So an answer without a label that holds is sent on, and then turned round:
 * the question that it answers passes the tables from the look-up of its connection on, gets the label of the rule that
 * allows it, or cuts the connection, and is dropped. TCP and SCTP acknowledge what they get, so it needs this for UDP
 * alone.
 */

export const datagram = (family: Family): MatchBuilder => match().protocol(family === 4 ? "udp" : "udp6");

/** An answer; one of a pod to itself is not judged at all. */
export const answered = (matched: MatchBuilder): MatchBuilder =>
  matched.ctState("+rpl+trk").bits(connectionMarks.hairpin, 0);

export const rejudgingFlows = (context: PipelineContext): Flow[] => [
  ...familiesOf(context).map((family) =>
    step("Output", Priority.guard, datagram(family).bits(registers.output, 1).bits(registers.rejudge, 1), [
      outputTo(registers.outputPort),
      ...turnRound(family),
      resubmit(tables.ConntrackZone),
    ]),
  ),
  step("Output", Priority.guard, match().bits(registers.question, 1), []),
  // The switch has forgotten the connection in between.
  step("ConntrackState", Priority.high, match().bits(registers.question, 1).ctState("+new+trk"), []),
];

/** As if it came from where the connection comes from, before any table has said something about it. */
const turnRound = (family: Family): readonly Action[] => [
  ...(family === 4 ? exchange(whole("ip_src"), whole("ip_dst"), registers.scratch) : []),
  ...(family === 6 ? exchange(whole("ipv6_src"), whole("ipv6_dst"), registers.endpointIp6) : []),
  ...exchange(whole("udp_src"), whole("udp_dst"), bits("reg2", 0, 15)),
  load(whole("reg0"), 0),
  move(connectionMarks.source, registers.source),
  load(registers.question, 1),
  ...[registers.outputPort, registers.egressRule, registers.ingressRule, whole("reg4")].map((one) => load(one, 0)),
  // Otherwise the switch would take the packet for what it has looked up already.
  ctClear,
];

const exchange = (one: ReturnType<typeof whole>, other: ReturnType<typeof whole>, by: ReturnType<typeof whole>) => [
  move(one, by),
  move(other, one),
  move(by, other),
];
