import type { Family } from "../../../../shared/net/ip.ts";
import { bits, type Flow, load, type MatchBuilder, match, move } from "../../../protocols/openflow/mod.ts";
import type { TunnelPackets } from "../../linux/packet-chains.ts";
import { Priority, sendTo, step } from "./build.ts";
import type { PipelineContext, Tunnel } from "./context.ts";
import { familiesOf } from "./families.ts";
import { Destination, registers, Source, virtualMac } from "./registers.ts";

/** The tunnel's key, of which VXLAN and Geneve have 24 bits. */
export const tunnelKey = bits("tun_id", 0, 31);

/**
 * Flows of the tunnel port, which leads to all other nodes. Packets from it were checked by the node that sent them.
 */
export function tunnelFlows(context: PipelineContext): Flow[] {
  const { tunnel, tunnelPerPeer } = context;
  if (tunnel === undefined) return [];
  return [
    ...(tunnelPerPeer === true ? [] : [receivingFlow(context, tunnel.ofport)]),
    step(
      "L2ForwardingCalc",
      Priority.normal,
      match().set("eth_dst", virtualMac).bits(registers.destination, Destination.tunnel),
      sendTo(tunnel.ofport),
      "TenantIsolation",
    ),
    ...forgedTunnelFlows(context, tunnel),
  ];
}

/** Flows of a tunnel to one node alone: packets go to it by the tunnel for all. */
export const peerTunnelFlows = (context: PipelineContext, ofport: number): Flow[] => [receivingFlow(context, ofport)];

function receivingFlow({ multitenant }: PipelineContext, ofport: number): Flow {
  const classified = [load(registers.source, Source.tunnel), load(registers.rewriteMac, 1)];
  const tenant = multitenant ? [move(tunnelKey, registers.sourceTenant)] : [];
  return step("Classifier", Priority.normal, match().set("in_port", ofport), [...classified, ...tenant], "PacketGuard");
}

/**
 * Drops pods' packets to tunnel ports, since a node would trust everything inside them. Such packets may leave the
 * bridge only inside of a tunnel, also after a service's translation.
 */
function forgedTunnelFlows(context: PipelineContext, tunnel: Tunnel): Flow[] {
  const ways = [Destination.gateway, ...(context.uplink === undefined ? [] : [Destination.uplink])];
  return familiesOf(context).flatMap((family) =>
    ways.map((way) =>
      step("L2ForwardingCalc", Priority.high, carrying(tunnel, family).bits(registers.destination, way), []),
    ),
  );
}

function carrying(tunnel: Tunnel, family: Family): MatchBuilder {
  const packets = packetsOf(tunnel);
  if (packets.protocol === "gre") return match().family(family).set("nw_proto", 47);
  const { protocol, port } = packets;
  return match()
    .protocol(family === 4 ? protocol : `${protocol}6`)
    .set(`${protocol}_dst`, port);
}

/** Protocol and port of the tunnel's outer packets. */
export function packetsOf({ type, port }: Pick<Tunnel, "type" | "port">): TunnelPackets {
  if (type === "gre") return { protocol: "gre" };
  const [protocol, own] = carriers[type];
  return { protocol, port: port ?? own };
}

const carriers = { geneve: ["udp", 6081], vxlan: ["udp", 4789], stt: ["tcp", 7471] } as const;
