import { type Cidr, gatewayIn, type Ip } from "../../../../shared/net/ip.ts";
import { addressOnLink } from "../../../cluster/cluster.ts";
import type { ClusterNode } from "../../../cluster/node-registry.ts";
import { type Action, type Flow, load, match, move, setField } from "../../../protocols/openflow/mod.ts";
import { answerArp } from "./arp-answer.ts";
import { Priority, step } from "./build.ts";
import type { PipelineContext } from "./context.ts";
import { Destination, registers, virtualMac } from "./registers.ts";
import type { TableName } from "./tables.ts";
import { strangerFlow } from "./tenants.ts";
import { tunnelKey } from "./tunnel.ts";
import { type ReachableByUplink, uplinkPeerFlows, uplinkTo } from "./uplink.ts";

/** The ways to another node: by tunnel, by this node's kernel, or from the uplink straight to the other's. */
type Way =
  | { readonly t: "tunnel"; readonly remote: Ip }
  | { readonly t: "gateway" }
  | ({ readonly t: "uplink" } & ReachableByUplink);

/** How packets for this subnet of another node are sent; `undefined` if that is impossible. */
export function wayTo(context: PipelineContext, peer: ClusterNode, subnet: Cidr): Way | undefined {
  if (context.kernelEncrypts === true) return { t: "gateway" };
  const onLink = addressOnLink(context.nodeAddresses, peer, subnet.ip.family);
  const isRouted = context.mode === "noEncap" || (context.mode === "hybrid" && onLink !== undefined);
  if (!isRouted) {
    const remote = tunnelEndOf(context, peer);
    return remote === undefined || context.tunnel === undefined ? undefined : { t: "tunnel", remote };
  }
  const direct = onLink !== undefined && peer.mac !== undefined ? uplinkTo(context, peer.mac, onLink) : undefined;
  return direct === undefined ? { t: "gateway" } : { t: "uplink", ...direct };
}

/** The tunnel's outer family: IPv4 if both nodes have it; the inner family does not matter. */
export const tunnelEndOf = ({ nodeAddresses }: PipelineContext, { addresses }: ClusterNode): Ip | undefined =>
  [...addresses]
    .sort((a, b) => a.family - b.family)
    .find(({ family }) => nodeAddresses.some(({ ip }) => ip.family === family));

/** The flows to another node and its pods. */
export function peerFlows(context: PipelineContext, peer: ClusterNode): Flow[] {
  if (context.mode === "networkPolicyOnly") return [];
  const ways = peer.subnets.map((subnet) => [subnet, wayTo(context, peer, subnet)] as const);
  const direct = ways.map(([, way]) => way).filter((way) => way?.t === "uplink");
  return [
    ...ways.flatMap(([subnet, way]) => subnetFlows(context, subnet, way)),
    ...(context.multitenant ? peer.subnets.map((subnet) => strangerFlow(context, subnet)) : []),
    ...uplinkPeerFlows(context, direct),
  ];
}

function subnetFlows(context: PipelineContext, subnet: Cidr, way: Way | undefined): Flow[] {
  if (way === undefined) return [];
  const { family } = subnet.ip;
  const inside = match()
    .family(family)
    .cidr(family === 4 ? "ip_dst" : "ipv6_dst", subnet);
  const [actions, next] = onTheWay(context, way);
  const forward = step("L3Forwarding", Priority.normal, inside, actions, next);
  if (family === 6) return [forward];
  // Answers ARP of the node's kernel, whose route to the subnet has the other node's gateway as next hop.
  const gateway = gatewayIn(subnet);
  const asked = match().protocol("arp").set("arp_op", 1).set("arp_tpa", gateway);
  return [forward, step("ARPResponder", Priority.normal, asked, answerArp(gateway))];
}

function onTheWay({ gateway, multitenant }: PipelineContext, way: Way): readonly [readonly Action[], TableName] {
  switch (way.t) {
    case "tunnel": {
      const remote = setField(way.remote.family === 4 ? "tun_dst" : "tun_ipv6_dst", way.remote);
      const tenant = multitenant ? [move(registers.sourceTenant, tunnelKey)] : [];
      const macs = [setField("eth_src", gateway.mac), setField("eth_dst", virtualMac)];
      return [[...macs, remote, ...tenant, load(registers.destination, Destination.tunnel)], "L3DecTTL"];
    }
    case "gateway":
      return [[setField("eth_dst", gateway.mac), load(registers.destination, Destination.gateway)], "SNATMark"];
    case "uplink":
      return [way.actions, "L3DecTTL"];
  }
}
