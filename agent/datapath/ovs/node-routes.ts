import { bitsOf, type Cidr, type Ip } from "../../../shared/net/ip.ts";
import { addressOnLink } from "../../cluster/address-on-link.ts";
import type { ClusterNode } from "../../cluster/node-registry.ts";
import type { NodeRoute } from "../routes.ts";
import type { OvsNodeOptions } from "./options.ts";
import type { PodPort } from "./overlay-node.ts";
import type { PipelineContext } from "./pipeline/context.ts";
import { gatewayAddressOf, virtualAddress, wayTo } from "./pipeline/mod.ts";
import { virtualMac } from "./pipeline/registers.ts";

/** Everything that the node's own packets have to be told the way to. */
export const nodeRoutes = (
  { services, serviceCidrs }: Pick<OvsNodeOptions, "services" | "serviceCidrs">,
  context: PipelineContext,
  nodes: ReadonlyMap<string, ClusterNode>,
  pods: Iterable<PodPort>,
): readonly NodeRoute[] => [
  ...peerRoutes(context, nodes),
  ...(services === undefined ? [] : serviceRoutes(serviceCidrs)),
  ...(context.mode === "networkPolicyOnly" ? podRoutes(pods) : []),
];

/** How this node's own packets get to the pods of others. */
const peerRoutes = (context: PipelineContext, nodes: ReadonlyMap<string, ClusterNode>): NodeRoute[] =>
  [...nodes.values()].flatMap((node) => node.subnets.flatMap((subnet) => routeTo(context, node, subnet) ?? []));

function routeTo(
  context: PipelineContext,
  node: ClusterNode,
  dst: ClusterNode["subnets"][number],
): NodeRoute | undefined {
  if (context.mode === "networkPolicyOnly") return undefined;
  const way = wayTo(context, node, dst);
  if (way === undefined) return undefined;
  // ARP for the other's gateway is answered by the switch; for IPv6 it is declared.
  const mac = dst.ip.family === 6 ? { mac: virtualMac } : {};
  if (way.t === "tunnel") return { dst, via: gatewayAddressOf(dst), by: "gateway", ...mac };
  const via = addressOnLink(context.nodeAddresses, node, dst.ip.family);
  // Behind a router: the underlay knows the way, or nobody does.
  return via === undefined ? undefined : { dst, via, by: "transport" };
}

/** Where pods have no subnet that would lead to the gateway, one by one: who asks for a pod there is answered. */
const podRoutes = (pods: Iterable<PodPort>): NodeRoute[] =>
  [...pods].flatMap(({ ips }) =>
    ips.map((ip) => ({ dst: { ip, prefix: bitsOf(ip.family) }, via: ip, by: "gateway" }) as const),
  );

/** The virtual host behind which all services are for the node, of each family that they have. */
export const virtualHosts = (cidrs: readonly Cidr[]): Ip[] =>
  [...new Set(cidrs.map(({ ip }) => ip.family))].map(virtualAddress);

/**
 * How the node itself reaches services: by way of one virtual host behind the gateway port, whose MAC is declared. It
 * also stands for the node where that talks to itself through a service, so answers have to find it.
 */
export function serviceRoutes(cidrs: readonly Cidr[]): NodeRoute[] {
  const hosts = virtualHosts(cidrs).map((ip) => ({ ip, prefix: bitsOf(ip.family) }));
  return [...hosts, ...cidrs].map((dst) => {
    return { dst, via: virtualAddress(dst.ip.family), by: "gateway" as const, mac: virtualMac };
  });
}
