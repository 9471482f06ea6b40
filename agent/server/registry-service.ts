import type { NodesPage, TenantsPage } from "../../shared/proto/daemon-services.ts";
import { registryService } from "../../shared/proto/daemon-services.ts";
import { GrpcCode, RpcError } from "../../shared/rpc/rpc-error.ts";
import { type Rpc, streamingRpc } from "../../shared/server/handlers.ts";
import { listNodes, listTenants } from "../cluster/listing.ts";
import type { NodeRegistry } from "../cluster/node-registry.ts";
import { messageOfNode } from "../cluster/node-text.ts";

/** Five hundred nodes are half a mebibyte at the most, an eighth of the largest message. */
const pageSize = 500;

/**
 * The registry as this agent reaches it, for commands on the node, because only the agent's pod may have its address
 * and credentials.
 * @param self the node's name
 * @param registry absent where the configuration has none
 */
export function registryRpcs(self: string, registry: NodeRegistry | undefined): readonly Rpc[] {
  return [
    streamingRpc(registryService.listNodes, async function* ({ rights }): AsyncGenerator<NodesPage, void> {
      const { name, revision = 0, nodes, excessRights } = await listNodes(required(registry), { rights });
      for (const [i, page] of pagesOf(nodes).entries())
        yield {
          registry: name,
          revision,
          self,
          nodes: page.map(messageOfNode),
          excessRights: i === 0 ? excessRights : [],
        };
    }),
    streamingRpc(registryService.listTenants, async function* (): AsyncGenerator<TenantsPage, void> {
      const { name, tenants } = await listTenants(required(registry));
      for (const page of pagesOf(tenants ?? []))
        yield { registry: name, keepsNone: tenants === undefined, tenants: page };
    }),
  ];
}

function required(registry: NodeRegistry | undefined): NodeRegistry {
  if (registry !== undefined) return registry;
  const is = 'the configuration that this agent runs with has no section "nodes"';
  throw new RpcError(GrpcCode.failedPrecondition, `Cannot ask the registry: ${is}`);
}

/** Answers at least one page. */
function pagesOf<T>(all: readonly T[]): readonly (readonly T[])[] {
  const pages = [all.slice(0, pageSize)];
  for (let at = pageSize; at < all.length; at += pageSize) pages.push(all.slice(at, at + pageSize));
  return pages;
}
