import type { Cidr, Ip } from "../../../../shared/net/ip.ts";
import { type Flow, load, type MatchBuilder, match } from "../../../protocols/openflow/mod.ts";
import { Priority, step } from "./build.ts";
import type { PipelineContext } from "./context.ts";
import { registers } from "./registers.ts";

/** A pod and the number of its project. */
interface Tenant {
  readonly ofport: number;
  readonly ips: readonly Ip[];
  readonly vnid: number;
}

/**
 * Isolation is enforced where the packet arrives, by the VNID that the sender's node has set: 0, of nodes and
 * privileged projects, reaches all and is reached by all. ARP and neighbour discovery are answered across projects,
 * which only reveals that an address is in use, and its MAC.
 */
export function tenantFlows(context: PipelineContext): Flow[] {
  if (!context.multitenant) return [step("TenantIsolation", Priority.miss, match(), [], "IngressRule")];
  const { addresses } = context.gateway;
  const passing = [registers.sourceTenant, registers.destinationTenant].map((tenant) =>
    step("TenantIsolation", Priority.high, match().bits(tenant, 0), [], "IngressRule"),
  );
  return [
    ...passing,
    step("TenantIsolation", Priority.miss, match(), []),
    ...addresses.map((ip) => sentOnFlow(context, ip, 0)),
    ...context.podSubnets.map((subnet) => strangerFlow(context, subnet)),
  ];
}

/**
 * Accepts packets of the pod's own project at its port, and recognises the project of the pod's packets that the node's
 * kernel forwards with another destination, as with kube-proxy.
 */
export function podTenantFlows(context: PipelineContext, { ofport, ips, vnid }: Tenant): Flow[] {
  if (!context.multitenant) return [];
  const own = match().bits(registers.sourceTenant, vnid).bits(registers.outputPort, ofport);
  return [
    ...(vnid === 0 ? [] : [step("TenantIsolation", Priority.normal, own, [], "IngressRule")]),
    ...ips.map((ip) => sentOnFlow(context, ip, vnid)),
  ];
}

/**
 * Drops packets from the gateway with source addresses of other nodes' pods: their project came with the tunnel and was
 * lost in the node's kernel.
 */
export const strangerFlow = (context: PipelineContext, subnet: Cidr): Flow =>
  step(
    "SpoofGuard",
    Priority.guard,
    fromGateway(context, subnet.ip).cidr(subnet.ip.family === 4 ? "ip_src" : "ipv6_src", subnet),
    [],
  );

const sentOnFlow = (context: PipelineContext, ip: Ip, vnid: number): Flow =>
  step(
    "SpoofGuard",
    Priority.high,
    fromGateway(context, ip).source(ip),
    vnid === 0 ? [] : [load(registers.sourceTenant, vnid)],
    "PacketGuard",
  );

const fromGateway = ({ gateway }: PipelineContext, { family }: Ip): MatchBuilder =>
  match().family(family).set("in_port", gateway.ofport);
