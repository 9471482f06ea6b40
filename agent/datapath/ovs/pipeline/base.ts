import { type Flow, load, match, output, outputTo, Port } from "../../../openflow/mod.ts";
import { Priority, step } from "./build.ts";
import { connectionFlows } from "./connections.ts";
import type { PipelineContext } from "./context.ts";
import { familiesOf } from "./families.ts";
import { gatewayFlows } from "./gateway.ts";
import { neighbourGuardFlows } from "./neighbours.ts";
import { policyOnlyFlows } from "./policy-only.ts";
import { preRoutingFlows } from "./prerouting.ts";
import { connectionMarks, Destination, registers, Source } from "./registers.ts";
import { snatFlows } from "./snat.ts";
import type { TableName } from "./tables.ts";
import { tenantFlows } from "./tenants.ts";
import { tunnelFlows } from "./tunnel.ts";
import { uplinkFlows } from "./uplink.ts";

/** Everything of a node that neither a pod, nor another node, nor a service brings along. */
export function baseFlows(context: PipelineContext): Flow[] {
  return [
    ...rootFlows(context),
    ...missFlows,
    ...gatewayFlows(context),
    ...tunnelFlows(context),
    ...uplinkFlows(context),
    ...neighbourGuardFlows(context),
    ...connectionFlows(context),
    ...preRoutingFlows,
    ...localSubnetFlows(context),
    ...policyOnlyFlows(context),
    ...timeToLiveFlows(context),
    ...snatFlows(context),
    ...tenantFlows(context),
    ...outputFlows,
  ];
}

/** A family that pods do not have stays out; but the node's own packets pass here too where the uplink is on the bridge. */
function rootFlows(context: PipelineContext): Flow[] {
  const families = context.uplink === undefined ? familiesOf(context) : ([4, 6] as const);
  return [
    step("PipelineRootClassifier", Priority.normal, match().protocol("arp"), [], "ARPSpoofGuard"),
    ...families.map((family) =>
      step("PipelineRootClassifier", Priority.normal, match().family(family), [], "Classifier"),
    ),
  ];
}

/** Where a packet goes that no other flow of the table wants; `undefined`: nowhere. */
const misses: readonly (readonly [TableName, TableName | undefined])[] = [
  ["PipelineRootClassifier", undefined],
  ["ARPSpoofGuard", undefined],
  ["ARPResponder", undefined],
  ["Classifier", undefined],
  ["SpoofGuard", undefined],
  ["IPv6", "UnSNAT"],
  ["UnSNAT", "ConntrackZone"],
  ["ConntrackZone", undefined],
  ["ConntrackState", "PreRoutingClassifier"],
  ["ServiceLB", "EndpointDNAT"],
  ["EndpointDNAT", "L3Forwarding"],
  ["L3DecTTL", undefined],
  ["SNATMark", "SNAT"],
  ["SNAT", "L2ForwardingCalc"],
  ["L2ForwardingCalc", undefined],
  ["ConntrackCommit", "Output"],
  ["Output", undefined],
];

const missFlows: readonly Flow[] = [
  ...misses.map(([table, next]) => step(table, Priority.miss, match(), [], next)),
  // To the world outside. The pod has named the gateway's MAC itself.
  step("L3Forwarding", Priority.miss, match(), [load(registers.destination, Destination.gateway)], "L2ForwardingCalc"),
];

/** Pods of one node reach each other as on one link, as the node reaches them: nothing is rewritten. */
const localSubnetFlows = ({ podSubnets }: PipelineContext): Flow[] =>
  podSubnets.map((subnet) => {
    const { family } = subnet.ip;
    const inside = match()
      .family(family)
      .bits(registers.rewriteMac, 0)
      .cidr(family === 4 ? "ip_dst" : "ipv6_dst", subnet);
    return step("L3Forwarding", Priority.low, inside, [], "L2ForwardingCalc");
  });

/** What came through the gateway has been counted by the node's kernel. */
const timeToLiveFlows = (context: PipelineContext): Flow[] =>
  familiesOf(context).flatMap((family) => [
    step("L3DecTTL", Priority.high, match().family(family).bits(registers.source, Source.gateway), [], "SNATMark"),
    step("L3DecTTL", Priority.normal, match().family(family), [{ t: "dec-ttl" }], "SNATMark"),
  ]);

const outputFlows: readonly Flow[] = [
  // A switch never sends a packet out where it came in, unless it is told so.
  step("Output", Priority.high, match().bits(registers.output, 1).bits(connectionMarks.hairpin, 1), [
    output(Port.IN_PORT),
  ]),
  step("Output", Priority.normal, match().bits(registers.output, 1), [outputTo(registers.outputPort)]),
];
