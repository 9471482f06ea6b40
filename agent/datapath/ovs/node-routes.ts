import { bitsOf } from "../../../shared/net/ip.ts";
import type { ClusterNode } from "../../cluster/node-registry.ts";
import type { NodeRoute } from "../routes.ts";
import type { OvsNodeOptions } from "./options.ts";
import { peerRoutes } from "./peers.ts";
import type { PipelineContext } from "./pipeline/context.ts";
import type { TenantPort } from "./pod-rows.ts";
import { serviceRoutes } from "./services/service-routes.ts";

/** Everything that the node's own packets have to be told the way to. */
export const nodeRoutes = (
  { services, serviceCidrs }: Pick<OvsNodeOptions, "services" | "serviceCidrs">,
  context: PipelineContext,
  nodes: ReadonlyMap<string, ClusterNode>,
  pods: Iterable<TenantPort>,
): readonly NodeRoute[] => [
  ...peerRoutes(context, nodes),
  ...(services === undefined ? [] : serviceRoutes(serviceCidrs)),
  ...(context.mode === "networkPolicyOnly" ? podRoutes(pods) : []),
];

/** Where pods have no subnet that would lead to the gateway, one by one: who asks for a pod there is answered. */
const podRoutes = (pods: Iterable<TenantPort>): NodeRoute[] =>
  [...pods].flatMap(({ ips }) =>
    ips.map((ip) => ({ dst: { ip, prefix: bitsOf(ip.family) }, via: ip, by: "gateway" }) as const),
  );
