import { type Family, type Ip, parseIp } from "../../../../shared/net/ip.ts";
import { type Action, ct, type Flow, load, type MatchBuilder, match } from "../../../protocols/openflow/mod.ts";
import { Priority, step } from "./build.ts";
import type { PipelineContext } from "./context.ts";
import {
  connectionMarks,
  Destination,
  registers,
  Source,
  virtualNodePortIp,
  virtualServiceIp,
  zones,
} from "./registers.ts";
import { tables } from "./tables.ts";

const { service, snat, hairpin } = connectionMarks;

/**
 * Source ports at the gateway's address, which the node itself asks endpoints from, too: by ports that its kernel
 * chooses, from 32768 on and on Windows from 49152 on. Those connections are in another zone, so that the switch would
 * not see that an endpoint can no longer tell two apart.
 */
const gatewayPorts = { port: 1_024, lastPort: 32_767 } as const;

/** In `SNATMark`: the connection is to have its source translated; with `hairpin`, it also leaves where it came in. */
export const markSnat = (family: Family, marks: "snat" | "hairpin"): Action =>
  ct({
    commit: true,
    table: tables.SNAT,
    zone: zones[family].main,
    exec: marks === "snat" ? [load(snat, 1)] : [load(snat, 1), load(hairpin, 1)],
  });

/**
 * Source translation for services, in a conntrack zone of its own beside the destination's: needed wherever the
 * endpoint would otherwise answer its client directly, bypassing this node.
 */
export const snatFlows = (context: PipelineContext): Flow[] =>
  context.gateway.addresses.flatMap((gateway) => familyFlows(context, gateway));

function familyFlows({ tunnel, uplink }: PipelineContext, gateway: Ip): Flow[] {
  const { family } = gateway;
  const ip = (): MatchBuilder => match().family(family);
  const virtual = virtualAddress(family);
  const existing = (next: "ConntrackZone" | "L2ForwardingCalc"): Action =>
    ct({ table: tables[next], zone: zones[family].snat, nat: { side: "existing" } });
  const translate = (from: Ip, mark: typeof snat): Action =>
    ct({
      commit: true,
      table: tables.L2ForwardingCalc,
      zone: zones[family].snat,
      nat: { side: "src", from, ...(from === gateway ? gatewayPorts : {}) },
      exec: [load(service, 1), load(mark, 1)],
    });
  const first = (): MatchBuilder => ip().ctState("+new+trk");
  const fromNode = (destination: number): MatchBuilder =>
    first().bits(service, 1).bits(registers.source, Source.gateway).bits(registers.destination, destination);
  const away = [
    ...(tunnel === undefined ? [] : [Destination.tunnel]),
    ...(uplink === undefined ? [] : [Destination.uplink]),
  ];
  return [
    ...[virtual, gateway].map((address) =>
      step("UnSNAT", Priority.normal, ip().destination(address), [existing("ConntrackZone")]),
    ),
    step("SNATMark", Priority.normal, fromNode(Destination.gateway), [markSnat(family, "hairpin")]),
    // An outside client: an endpoint on another node would answer it directly, bypassing this node.
    ...away.map((destination) =>
      step("SNATMark", Priority.normal, fromNode(destination).bits(registers.fromExternal, 1), [
        markSnat(family, "snat"),
      ]),
    ),
    step("SNAT", Priority.normal, first().bits(hairpin, 1).bits(registers.source, Source.gateway), [
      translate(virtual, hairpin),
    ]),
    step("SNAT", Priority.normal, first().bits(hairpin, 1).bits(registers.source, Source.pod), [
      translate(gateway, hairpin),
    ]),
    step("SNAT", Priority.low, first().bits(snat, 1).bits(registers.source, Source.gateway), [
      translate(gateway, snat),
    ]),
    step("SNAT", Priority.normal, ip().ctState("-new-rpl+trk").bits(snat, 1), [existing("L2ForwardingCalc")]),
  ];
}

/** The services' virtual host, that the node's route to all services leads through. */
export const virtualAddress = (family: Family): Ip => known(virtualServiceIp[family]);

/** Which node ports have for the switch. */
export const virtualNodePort = (family: Family): Ip => known(virtualNodePortIp[family]);

function known(text: string): Ip {
  const ip = parseIp(text);
  if (ip === undefined) throw new Error(`Broken invariant: "${text}" is an address`);
  return ip;
}
