import { type Action, type Flow, load, match, resubmit, setField } from "../../../protocols/openflow/mod.ts";
import { Priority, step } from "./build.ts";
import type { PipelineContext } from "./context.ts";
import { familiesOf } from "./families.ts";
import { Destination, EndpointState, registers, Source } from "./registers.ts";
import { virtualNodePort } from "./snat.ts";
import { tables } from "./tables.ts";

const { toSelect, selected } = EndpointState;

/** The tables of services, which have the flows of single ones, beside those here. */
export const serviceTables: readonly number[] = [
  tables.PreRoutingClassifier,
  tables.NodePortMark,
  tables.ServiceLB,
  tables.EndpointDNAT,
];

/** Sends a packet past the services. */
export const selectService: readonly Action[] = [
  resubmit(tables.NodePortMark),
  resubmit(tables.SessionAffinity),
  resubmit(tables.ServiceLB),
];

/** The path of new connections through the tables of services, also without any service. */
export const preRoutingFlows = (context: PipelineContext): readonly Flow[] => [
  step("PreRoutingClassifier", Priority.miss, match(), selectService),
  step("NodePortMark", Priority.miss, match(), []),
  ...nodePortFlows(context),
  step("SessionAffinity", Priority.miss, match(), [load(registers.endpointState, toSelect)]),
  // The endpoint of a client with session affinity has gone, so another is chosen.
  step("EndpointDNAT", Priority.low, match().bits(registers.endpointState, selected), [
    load(registers.endpointState, toSelect),
    resubmit(tables.ServiceLB),
  ]),
  ...refusedFlows(context),
];

/** Pods name the node's addresses; what others send to these comes by the node's kernel, with a virtual address. */
const nodePortFlows = (context: PipelineContext): readonly Flow[] => [
  ...(context.nodePorts?.addresses ?? []).map((ip) =>
    step(
      "NodePortMark",
      Priority.normal,
      match().family(ip.family).bits(registers.source, Source.pod).destination(ip),
      [load(registers.nodePort, 1)],
    ),
  ),
  ...(context.nodePorts === undefined ? [] : familiesOf(context)).map((family) =>
    step(
      "NodePortMark",
      Priority.normal,
      match().family(family).bits(registers.source, Source.gateway).destination(virtualNodePort(family)),
      [load(registers.nodePort, 1)],
    ),
  ),
];

/** Packets for a service without any endpoint; those of the node and of others the kernel has refused before. */
const refusedFlows = ({ gateway, nodePorts }: PipelineContext): readonly Flow[] => [
  step("EndpointDNAT", Priority.normal, match().bits(registers.noEndpoint, 1), []),
  ...(nodePorts?.refuses === true
    ? [
        step(
          "EndpointDNAT",
          Priority.high,
          match().bits(registers.noEndpoint, 1).bits(registers.source, Source.pod),
          [setField("eth_dst", gateway.mac), load(registers.destination, Destination.gateway)],
          "L2ForwardingCalc",
        ),
      ]
    : []),
];
