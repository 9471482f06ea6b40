import { type Flow, load, match, setField } from "../../../protocols/openflow/mod.ts";
import { answerArp } from "./arp-answer.ts";
import { Priority, step } from "./build.ts";
import type { PipelineContext } from "./context.ts";
import { familiesOf } from "./families.ts";
import type { Neighbour } from "./neighbours.ts";
import { Destination, registers } from "./registers.ts";

/**
 * Another CNI plugin allocates addresses and routes them, so there are no subnets here. Every ARP request is answered
 * with the virtual MAC, and packets are delivered by address to a pod of this node or to its kernel.
 */
export function policyOnlyFlows(context: PipelineContext): Flow[] {
  if (context.mode !== "networkPolicyOnly") return [];
  return [
    step("ARPResponder", Priority.normal, match().protocol("arp").set("arp_op", 1), answerArp("asked")),
    ...familiesOf(context).map((family) =>
      step(
        "L3Forwarding",
        Priority.low,
        match().family(family),
        [setField("eth_dst", context.gateway.mac), load(registers.destination, Destination.gateway)],
        "SNATMark",
      ),
    ),
  ];
}

export const policyOnlyPodFlows = ({ gateway }: PipelineContext, { mac, ips }: Neighbour): Flow[] =>
  ips.map((ip) =>
    step(
      "L3Forwarding",
      Priority.normal,
      match().family(ip.family).destination(ip),
      [setField("eth_src", gateway.mac), setField("eth_dst", mac)],
      "L3DecTTL",
    ),
  );
