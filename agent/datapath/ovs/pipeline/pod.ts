import type { Ip } from "../../../../shared/net/ip.ts";
import { type Action, type Flow, load, match, setField } from "../../../protocols/openflow/mod.ts";
import { Priority, sendTo, step } from "./build.ts";
import type { PipelineContext } from "./context.ts";
import { answersFor, type Neighbour, neighbourSpoofFlows, noAnswerToHolder } from "./neighbours.ts";
import { newConnectionFlows } from "./new-connections.ts";
import { policyOnlyPodFlows } from "./policy-only.ts";
import { registers, Source } from "./registers.ts";
import { podTenantFlows } from "./tenants.ts";

/** A pod's port on the bridge. */
interface PodPort extends Neighbour {
  /** The VNID of its project; 0 reaches all. Unused if projects are not isolated. */
  readonly vnid: number;
}

/** The flows that let a pod's packets in, and deliver packets to its port. */
export function podFlows(context: PipelineContext, pod: PodPort): Flow[] {
  const { ofport, mac, ips } = pod;
  const { mode, multitenant } = context;
  const vnid = multitenant ? pod.vnid : 0;
  const fromTenant: readonly Action[] = vnid === 0 ? [] : [load(registers.sourceTenant, vnid)];
  const toTenant: readonly Action[] = vnid === 0 ? [] : [load(registers.destinationTenant, vnid)];
  return [
    step(
      "Classifier",
      Priority.low,
      match().set("in_port", ofport),
      [load(registers.source, Source.pod), load(registers.fromLocal, 1)],
      "SpoofGuard",
    ),
    ...ips.flatMap((ip) => addressFlows(pod, ip, fromTenant)),
    ...neighbourSpoofFlows(pod),
    ...noAnswerToHolder(pod),
    ...(mode === "networkPolicyOnly"
      ? policyOnlyPodFlows(context, pod)
      : [...answersFor(pod, "pod"), ...ips.flatMap((ip) => forwardingFlows(context, pod, ip))]),
    step(
      "L2ForwardingCalc",
      Priority.normal,
      match().set("eth_dst", mac),
      [...sendTo(ofport), ...toTenant],
      "TenantIsolation",
    ),
    ...podTenantFlows(context, pod),
    ...newConnectionFlows(context, pod),
  ];
}

/** Accepts only packets from the pod's own address and MAC. */
function addressFlows({ ofport, mac }: PodPort, ip: Ip, fromTenant: readonly Action[]): Flow[] {
  const own = match().family(ip.family).set("in_port", ofport).set("eth_src", mac).source(ip);
  const packets = step("SpoofGuard", Priority.normal, own, fromTenant, "PacketGuard");
  if (ip.family === 6) return [packets];
  const arp = match().protocol("arp").set("in_port", ofport).set("eth_src", mac).set("arp_spa", ip).set("arp_sha", mac);
  return [packets, step("ARPSpoofGuard", Priority.normal, arp, [], "ARPResponder")];
}

/** Delivers to the pod by its address, with rewritten MACs for packets from elsewhere. */
function forwardingFlows({ gateway }: PipelineContext, { mac }: PodPort, ip: Ip): Flow[] {
  const to = (rewrite: 0 | 1) => match().family(ip.family).bits(registers.rewriteMac, rewrite).destination(ip);
  return [
    step(
      "L3Forwarding",
      Priority.normal,
      to(1),
      [setField("eth_src", gateway.mac), setField("eth_dst", mac)],
      "L3DecTTL",
    ),
    // A neighbour may still use the MAC of the address's earlier pod.
    step("L3Forwarding", Priority.normal, to(0), [setField("eth_dst", mac)], "L2ForwardingCalc"),
  ];
}
