import { type Flow, load, match, setField } from "../../../protocols/openflow/mod.ts";
import { Priority, sendTo, step } from "./build.ts";
import type { PipelineContext } from "./context.ts";
import { familiesOf } from "./families.ts";
import { answersFor, noAnswerToHolder } from "./neighbours.ts";
import { connectionMarks, Destination, registers, Source } from "./registers.ts";

/** Flows of the gateway port, which leads to the node's kernel and from there to outside destinations. */
export function gatewayFlows(context: PipelineContext): Flow[] {
  const { ofport, mac, addresses } = context.gateway;
  const toHost = [setField("eth_dst", mac), load(registers.destination, Destination.gateway)];
  return [
    ...addresses.flatMap((ip) => {
      const { family } = ip;
      return [
        step(
          "Classifier",
          Priority.high,
          match().family(family).set("in_port", ofport).source(ip),
          [load(registers.source, Source.gateway), load(registers.fromLocal, 1)],
          "SpoofGuard",
        ),
        step("L3Forwarding", Priority.high, match().family(family).destination(ip), toHost, "SNATMark"),
        ...(family === 4
          ? [
              step(
                "ARPSpoofGuard",
                Priority.normal,
                match().protocol("arp").set("in_port", ofport).set("arp_spa", ip).set("arp_sha", mac),
                [],
                "ARPResponder",
              ),
            ]
          : []),
      ];
    }),
    ...(context.mode === "networkPolicyOnly" ? [] : answersFor({ ofport, mac, ips: addresses }, "router")),
    ...noAnswerToHolder({ ofport, mac, ips: addresses }),
    step(
      "Classifier",
      Priority.normal,
      match().set("in_port", ofport),
      [load(registers.source, Source.gateway), load(registers.fromExternal, 1)],
      "SpoofGuard",
    ),
    ...familiesOf(context).flatMap((family) => [
      step("SpoofGuard", Priority.normal, match().family(family).set("in_port", ofport), [], "PacketGuard"),
      // Replies go back to the connection's source port, whatever their address.
      step(
        "L3Forwarding",
        Priority.high,
        match().family(family).ctState("+rpl+trk").bits(connectionMarks.source, Source.gateway),
        toHost,
        "SNATMark",
      ),
      // From the node through a service to an endpoint outside: back to the node, which knows the way.
      step(
        "L3Forwarding",
        Priority.outside,
        match()
          .family(family)
          .bits(connectionMarks.service, 1)
          .bits(registers.source, Source.gateway)
          .bits(registers.rewriteMac, 1),
        toHost,
        "SNATMark",
      ),
    ]),
    step(
      "L2ForwardingCalc",
      Priority.normal,
      match().set("eth_dst", mac).bits(registers.destination, Destination.gateway),
      sendTo(ofport),
      "TenantIsolation",
    ),
  ];
}
