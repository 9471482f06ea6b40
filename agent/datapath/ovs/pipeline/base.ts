import type { Cidr } from "../../../../shared/net/ip.ts";
import {
  type Action,
  type Flow,
  load,
  type MatchBuilder,
  match,
  output,
  outputTo,
  Port,
  setField,
} from "../../../protocols/openflow/mod.ts";
import { broadcast, linkLocal6, linkLocalOf, multicast } from "../../addresses.ts";
import { Priority, step } from "./build.ts";
import { connectionFlows } from "./connections.ts";
import type { PipelineContext } from "./context.ts";
import { familiesOf } from "./families.ts";
import { gatewayFlows } from "./gateway.ts";
import { neighbourGuardFlows } from "./neighbours.ts";
import { packetGuardFlows } from "./packet-guard.ts";
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
    ...packetGuardFlows(context),
    ...neighbourGuardFlows(context),
    ...connectionFlows(context),
    ...preRoutingFlows,
    ...absentPodFlows(context),
    ...outsideFlows(context),
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
    // The switch would read past the tag, and send it on with the rest.
    step("PipelineRootClassifier", Priority.guard, match().vlan("any"), []),
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
  ["PacketGuard", "UnSNAT"],
  ["IPv6", "UnSNAT"],
  ["UnSNAT", "ConntrackZone"],
  ["ConntrackZone", undefined],
  ["ConntrackState", "PreRoutingClassifier"],
  ["ServiceLB", "EndpointDNAT"],
  ["EndpointDNAT", "L3Forwarding"],
  ["L3Forwarding", undefined],
  ["L3DecTTL", undefined],
  ["SNATMark", "SNAT"],
  ["SNAT", "L2ForwardingCalc"],
  ["L2ForwardingCalc", undefined],
  ["ConntrackCommit", "Output"],
  ["Output", undefined],
];

const missFlows: readonly Flow[] = misses.map(([table, next]) => step(table, Priority.miss, match(), [], next));

const inside = (block: Cidr): MatchBuilder =>
  match()
    .family(block.ip.family)
    .cidr(block.ip.family === 4 ? "ip_dst" : "ipv6_dst", block);

/**
 * Of the node's own subnets, what no pod and no gateway has. The node's kernel would ask for it, and a pod could fill
 * its table of neighbours with questions that nobody answers.
 */
const absentPodFlows = ({ podSubnets }: PipelineContext): Flow[] =>
  podSubnets.map((subnet) => step("L3Forwarding", Priority.low, inside(subnet), []));

/**
 * From pods to the world outside, by the node's kernel, whichever MAC they have named: else they would get past it to
 * whoever has that. To groups they send nothing, and by link-local addresses nothing but to the gateway.
 */
function outsideFlows(context: PipelineContext): Flow[] {
  if (context.mode === "networkPolicyOnly") return [];
  const { mac } = context.gateway;
  const toNode = [setField("eth_dst", mac), load(registers.destination, Destination.gateway)];
  return familiesOf(context).flatMap((family) => [
    ...[multicast[family], family === 4 ? broadcast : linkLocal6].map((block) =>
      step("L3Forwarding", Priority.low, inside(block), []),
    ),
    ...(family === 4 ? [] : [ownLinkFlow(mac, toNode)]),
    step(
      "L3Forwarding",
      Priority.outside,
      match().family(family).bits(registers.source, Source.pod),
      toNode,
      "L2ForwardingCalc",
    ),
  ]);
}

/** Of all link-local addresses a pod's link has the gateway's; the pods' own are for neighbour discovery alone. */
const ownLinkFlow = (mac: string, toNode: readonly Action[]): Flow =>
  step(
    "L3Forwarding",
    Priority.normal,
    match().family(6).bits(registers.source, Source.pod).destination(linkLocalOf(mac)),
    toNode,
    "L2ForwardingCalc",
  );

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
