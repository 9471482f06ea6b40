import { bits, type Flow, load, match, move } from "../../../openflow/mod.ts";
import { Priority, sendTo, step } from "./build.ts";
import type { PipelineContext } from "./context.ts";
import { Destination, registers, Source, virtualMac } from "./registers.ts";

/** The tunnel's key, of which VXLAN and Geneve have 24 bits. */
export const tunnelKey = bits("tun_id", 0, 31);

/** The port that all other nodes are behind. What comes out of it was checked by the node that sent it. */
export function tunnelFlows({ tunnel, multitenant }: PipelineContext): Flow[] {
  if (tunnel === undefined) return [];
  const classified = [load(registers.source, Source.tunnel), load(registers.rewriteMac, 1)];
  const tenant = multitenant ? [move(tunnelKey, registers.sourceTenant)] : [];
  return [
    step("Classifier", Priority.normal, match().set("in_port", tunnel.ofport), [...classified, ...tenant], "UnSNAT"),
    step(
      "L2ForwardingCalc",
      Priority.normal,
      match().set("eth_dst", virtualMac).bits(registers.destination, Destination.tunnel),
      sendTo(tunnel.ofport),
      "TenantIsolation",
    ),
  ];
}
