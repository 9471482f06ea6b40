import { formatIp, type Ip, parseCidr } from "../../../../shared/net/ip.ts";
import {
  type Action,
  type Flow,
  load,
  type MatchBuilder,
  match,
  output,
  Port,
  setField,
} from "../../../protocols/openflow/mod.ts";
import { Priority, sendTo, step } from "./build.ts";
import type { PipelineContext } from "./context.ts";
import { Destination, registers, Source } from "./registers.ts";

/** Of an Ethernet address, the bit that says "to many". */
const toMany = "01:00:00:00:00:00";
const linkLocal = parseCidr("fe80::/10");

/**
 * The node's own interface as a port of the bridge, with the node's addresses at LOCAL, as on Windows: packets for the
 * node go to LOCAL, those from LOCAL go out, and without a tunnel packets for pods enter the pipeline here.
 */
export function uplinkFlows({ uplink, mode, nodeAddresses, podSubnets }: PipelineContext): Flow[] {
  if (uplink === undefined) return [];
  const { ofport } = uplink;
  const toNode = (priority: number, matched: MatchBuilder): Flow =>
    step("Classifier", priority, matched.set("in_port", ofport), [output(Port.LOCAL)]);
  const routed = mode === "noEncap" || mode === "hybrid" ? podSubnets : [];
  const tagged = (inPort: number): MatchBuilder => match().set("in_port", inPort).vlan("any");
  return [
    // VLANs are the node's own.
    step("PipelineRootClassifier", Priority.high, tagged(ofport), [output(Port.LOCAL)]),
    step("PipelineRootClassifier", Priority.high, tagged(Port.LOCAL), [output(ofport)]),
    step("ARPSpoofGuard", Priority.normal, match().protocol("arp").set("in_port", ofport), [output(Port.LOCAL)]),
    step("ARPSpoofGuard", Priority.normal, match().protocol("arp").set("in_port", Port.LOCAL), [output(ofport)]),
    ...nodeAddresses.map(({ ip }) => toNode(Priority.normal, match().family(ip.family).destination(ip))),
    step("Classifier", Priority.normal, match().set("in_port", Port.LOCAL), [output(ofport)]),
    // Multicast to the node passes. Antrea drops it, and with it DHCP answers and neighbour discovery of the node
    // itself.
    toNode(Priority.low, match().masked("eth_dst", toMany, toMany)),
    ...(linkLocal === undefined ? [] : [toNode(Priority.low, match().family(6).cidr("ipv6_dst", linkLocal))]),
    ...routed.map((subnet) =>
      step(
        "Classifier",
        Priority.high,
        match()
          .family(subnet.ip.family)
          .set("in_port", ofport)
          .cidr(subnet.ip.family === 4 ? "ip_dst" : "ipv6_dst", subnet),
        [load(registers.source, Source.uplink), load(registers.rewriteMac, 1)],
        "PacketGuard",
      ),
    ),
  ];
}

/** A node on the same link, whose MAC is known. */
export interface ReachableByUplink {
  readonly address: Ip;
  readonly mac: string;
  readonly actions: readonly Action[];
}

export function uplinkTo({ uplink }: PipelineContext, mac: string, address: Ip): ReachableByUplink | undefined {
  if (uplink === undefined) return undefined;
  const macs = [setField("eth_src", uplink.mac), setField("eth_dst", mac)];
  return { address, mac, actions: [...macs, load(registers.destination, Destination.uplink)] };
}

/** Replies of pods to the other node itself, sent to its MAC; once, also if it has subnets of both families. */
export function uplinkPeerFlows({ uplink }: PipelineContext, peers: readonly ReachableByUplink[]): Flow[] {
  if (uplink === undefined) return [];
  const addresses = new Map(peers.map((peer) => [formatIp(peer.address), peer]));
  const macs = new Set(peers.map(({ mac }) => mac));
  return [
    ...[...addresses.values()].map(({ address, actions }) =>
      step(
        "L3Forwarding",
        Priority.normal,
        match().family(address.family).ctState("+rpl+trk").destination(address),
        actions,
        "L3DecTTL",
      ),
    ),
    ...[...macs].map((mac) =>
      step(
        "L2ForwardingCalc",
        Priority.normal,
        match().set("eth_dst", mac).bits(registers.destination, Destination.uplink),
        sendTo(uplink.ofport),
        "TenantIsolation",
      ),
    ),
  ];
}
