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

/** The flows of a node that do not depend on pods, other nodes or services. */
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
    ...preRoutingFlows(context),
    ...absentPodFlows(context),
    ...outsideFlows(context),
    ...policyOnlyFlows(context),
    ...timeToLiveFlows(context),
    ...snatFlows(context),
    ...tenantFlows(context),
    ...outputFlows,
  ];
}

/** Drops address families that pods do not have; with an uplink on the bridge the node's own packets pass here too. */
function rootFlows(context: PipelineContext): Flow[] {
  const families = context.uplink === undefined ? familiesOf(context) : ([4, 6] as const);
  return [
    // Tagged frames are dropped, because the switch would ignore the tag in matches and forward it.
    step("PipelineRootClassifier", Priority.guard, match().vlan("any"), []),
    step("PipelineRootClassifier", Priority.normal, match().protocol("arp"), [], "ARPSpoofGuard"),
    ...families.map((family) =>
      step("PipelineRootClassifier", Priority.normal, match().family(family), [], "Classifier"),
    ),
  ];
}

/** The next table of packets that no other flow matches; `undefined`: drop. */
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
  ["EndpointDNAT", "EgressRule"],
  ["EgressRule", "EgressDefaultRule"],
  ["EgressDefaultRule", "L3Forwarding"],
  // Only what a rule lets pass goes on, and what is refused ends here.
  ["EgressMetric", undefined],
  ["L3Forwarding", undefined],
  ["L3DecTTL", undefined],
  ["SNATMark", "SNAT"],
  ["SNAT", "L2ForwardingCalc"],
  ["L2ForwardingCalc", undefined],
  ["IngressRule", "IngressDefaultRule"],
  ["IngressDefaultRule", "ConntrackCommit"],
  ["IngressMetric", undefined],
  ["ConntrackCommit", "Output"],
  ["Output", undefined],
];

const missFlows: readonly Flow[] = misses.map(([table, next]) => step(table, Priority.miss, match(), [], next));

const inside = (block: Cidr): MatchBuilder =>
  match()
    .family(block.ip.family)
    .cidr(block.ip.family === 4 ? "ip_dst" : "ipv6_dst", block);

/**
 * Drops packets to unused addresses of the node's own subnets: the node's kernel would send ARP for each, so that a pod
 * could fill its neighbour table.
 */
const absentPodFlows = ({ podSubnets }: PipelineContext): Flow[] =>
  podSubnets.map((subnet) => step("L3Forwarding", Priority.low, inside(subnet), []));

/**
 * Pods' packets to outside destinations go through the node's kernel, whatever destination MAC they have, since
 * otherwise they could reach another host directly. Multicast is dropped, and link-local destinations except the
 * gateway's.
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

/** Of link-local addresses only the gateway's can be reached; pods' own serve neighbour discovery only. */
const ownLinkFlow = (mac: string, toNode: readonly Action[]): Flow =>
  step(
    "L3Forwarding",
    Priority.normal,
    match().family(6).bits(registers.source, Source.pod).destination(linkLocalOf(mac)),
    toNode,
    "L2ForwardingCalc",
  );

/** The node's kernel has already decremented the TTL of packets from the gateway. */
const timeToLiveFlows = (context: PipelineContext): Flow[] =>
  familiesOf(context).flatMap((family) => [
    step("L3DecTTL", Priority.high, match().family(family).bits(registers.source, Source.gateway), [], "SNATMark"),
    step("L3DecTTL", Priority.normal, match().family(family), [{ t: "dec-ttl" }], "SNATMark"),
  ]);

const outputFlows: readonly Flow[] = [
  // A switch sends a packet out by its input port only with an explicit `in_port` action.
  step("Output", Priority.high, match().bits(registers.output, 1).bits(connectionMarks.hairpin, 1), [
    output(Port.IN_PORT),
  ]),
  step("Output", Priority.normal, match().bits(registers.output, 1), [outputTo(registers.outputPort)]),
];
