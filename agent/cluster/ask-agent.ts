import { RpcChannel } from "../../shared/channel/rpc-channel.ts";
import { CniCode, CniError } from "../../shared/errors.ts";
import { registryService } from "../../shared/proto/daemon-services.ts";
import { GrpcCode, RpcError } from "../../shared/rpc/rpc-error.ts";
import type { NodeListing, TenantListing } from "./listing.ts";
import { nodeOfMessage } from "./node-text.ts";

/** The agent's answer, or why the registry has to be asked directly. */
export type Answer<T> = { readonly t: "agent"; readonly is: T } | { readonly t: "none"; readonly why: string };

/** Longer than the registry's own deadline, whose error says more. */
const answerMs = 15_000;

/** @throws {CniError} 11, the agent's error for a registry that does not answer */
export function nodesByAgent(
  socket: string,
  request: { readonly rights: boolean },
): Promise<Answer<NodeListing & { readonly self: string }>> {
  return ask(socket, async (agent) => {
    const pages = await Array.fromAsync(agent.stream(registryService.listNodes, request, { timeoutMs: answerMs }));
    const { registry = "", revision = 0, excessRights = [], self = "" } = pages[0] ?? {};
    const nodes = pages.flatMap((page) => page.nodes.map(nodeOfMessage));
    return { name: registry, self, nodes, excessRights, ...(revision === 0 ? {} : { revision }) };
  });
}

/** @throws {CniError} as `nodesByAgent` */
export function tenantsByAgent(socket: string): Promise<Answer<TenantListing>> {
  return ask(socket, async (agent) => {
    const pages = await Array.fromAsync(agent.stream(registryService.listTenants, {}, { timeoutMs: answerMs }));
    const { registry = "", keepsNone = true } = pages[0] ?? {};
    return { name: registry, ...(keepsNone ? {} : { tenants: pages.flatMap(({ tenants }) => tenants) }) };
  });
}

async function ask<T>(socket: string, work: (agent: RpcChannel) => Promise<T>): Promise<Answer<T>> {
  using agent = new RpcChannel(socket);
  try {
    return { t: "agent", is: await work(agent) };
  } catch (caught) {
    if (!(caught instanceof RpcError)) throw caught;
    if (caught.unreachable) return { t: "none", why: `no agent serves "${socket}"` };
    if (caught.grpcCode === GrpcCode.deadlineExceeded)
      return { t: "none", why: `the agent gives no answer within ${answerMs} ms` };
    if (caught.grpcCode === GrpcCode.unimplemented)
      return { t: "none", why: "the agent that runs is of an earlier release" };
    if (caught.grpcCode === GrpcCode.failedPrecondition)
      return { t: "none", why: "the agent that runs has no registry in its configuration" };
    throw new CniError(CniCode.tryAgainLater, caught.message, { cause: caught });
  }
}
