import { bitsOf, type Cidr, gatewayIn, hostBlock, type Ip } from "../../../shared/net/ip.ts";
import { addressOnLink } from "../../cluster/cluster.ts";
import type { ClusterNode } from "../../cluster/node-registry.ts";
import type { NodeRoute } from "../routes.ts";
import type { OvsNodeOptions } from "./options.ts";
import type { PodPort } from "./overlay-node.ts";
import type { PipelineContext } from "./pipeline/context.ts";
import { virtualAddress, virtualNodePort, wayTo } from "./pipeline/mod.ts";
import { virtualMac } from "./pipeline/registers.ts";

/** All routes that the node's own packets need, and those of others for services. */
export const nodeRoutes = (
  {
    services,
    serviceCidrs,
  }: Pick<OvsNodeOptions, "serviceCidrs"> & { readonly services?: { readonly proxyAll: boolean } | undefined },
  context: PipelineContext,
  nodes: ReadonlyMap<string, ClusterNode>,
  pods: Iterable<PodPort>,
  serviceIps: readonly Ip[] = [],
): readonly NodeRoute[] => [
  ...peerRoutes(context, nodes),
  ...(services?.proxyAll === true ? serviceRoutes(serviceCidrs, serviceIps) : []),
  ...(context.mode === "networkPolicyOnly" ? podRoutes(pods) : []),
];

/** To other nodes' pods. */
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
  if (context.kernelEncrypts === true) {
    const source = context.gateway.addresses.find(({ family }) => family === dst.ip.family);
    return { dst, via: gatewayIn(dst), by: "encrypted", ...(source === undefined ? {} : { source }) };
  }
  // The switch answers ARP for the other node's gateway; for IPv6 the neighbour is static.
  const mac = dst.ip.family === 6 ? { mac: virtualMac } : {};
  if (way.t === "tunnel") return { dst, via: gatewayIn(dst), by: "gateway", ...mac };
  const via = addressOnLink(context.nodeAddresses, node, dst.ip.family);
  // Behind a router: the underlay has to have a route.
  return via === undefined ? undefined : { dst, via, by: "transport" };
}

/** Routes to single pods, for nodes without a subnet of their own; the switch answers ARP for pods on the gateway. */
const podRoutes = (pods: Iterable<PodPort>): NodeRoute[] =>
  [...pods].flatMap(({ ips }) =>
    ips.map((ip) => ({ dst: { ip, prefix: bitsOf(ip.family) }, via: ip, by: "gateway" }) as const),
  );

/** The virtual host through which the node reaches all services, in each of their families. */
export const virtualHosts = (cidrs: readonly Cidr[]): Ip[] =>
  [...new Set(cidrs.map(({ ip }) => ip.family))].map(virtualAddress);

/**
 * The node's own routes to services: through a virtual host behind the gateway port with a static MAC. Its address is
 * also the source when the node reaches itself through a service, so replies need a route to it. Node ports have an
 * address of their own there.
 * @param ips external IPs, and those of load balancers
 */
export function serviceRoutes(cidrs: readonly Cidr[], ips: readonly Ip[] = []): NodeRoute[] {
  const hosts = virtualHosts(cidrs).flatMap((ip) => [ip, virtualNodePort(ip.family)]);
  return [...[...hosts, ...ips].map(hostBlock), ...cidrs].map((dst) => {
    return { dst, via: virtualAddress(dst.ip.family), by: "gateway" as const, mac: virtualMac };
  });
}
