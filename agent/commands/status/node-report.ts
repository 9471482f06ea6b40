import { RpcChannel } from "../../../shared/channel/rpc-channel.ts";
import type { LeasesDocument, NodeDocument, PodsDocument } from "../../../shared/documents/mod.ts";
import { limits } from "../../../shared/limits.ts";
import { whoMay } from "../../../shared/os/rights.ts";
import { ipamService } from "../../../shared/proto/daemon-services.ts";
import type { LeaseMessage } from "../../../shared/proto/ipam-messages.ts";
import type { NodeInterface, StatusResponse } from "../../../shared/proto/pipette-messages.ts";
import { nodeService } from "../../../shared/proto/services.ts";
import { reasonOf } from "../../../shared/reason.ts";
import { GrpcCode, RpcError } from "../../../shared/rpc/rpc-error.ts";

/**
 * The largest number of leases that is checked: checking more would delay the agent's calls, and "pipette ipam check"
 * does it without the agent.
 */
const maxChecked = 5_000;

/** What `pipette status` tells of a node. */
export interface NodeReport {
  readonly status: StatusResponse;
  readonly leases: readonly LeaseMessage[];
  /** Empty too while the agent cannot tell, since it has not begun to serve. */
  readonly interfaces: readonly NodeInterface[];
  /** What is wrong with the lease database, in sentences; a probe does not ask for it. */
  readonly database: readonly string[];
}

/** The same as the agent's own answers say. @param database what is wrong with its leases, if that is known */
export function reportOf(
  { agentVersion, ...node }: NodeDocument,
  { pods }: PodsDocument,
  { leases }: LeasesDocument,
  database: readonly string[] = [],
): NodeReport {
  return {
    status: { ...node, version: agentVersion, peerTroubles: node.peerTroubles ?? [] },
    interfaces: pods.map(({ network, containerId, ifname, hostIfname, ownLease }) => ({
      ...{ network, containerId, ifname, hostIfname, ownLease },
    })),
    leases: leases.map(({ network, containerId, ifname, state, generation, ...lease }) => ({
      ...{ network, containerId, ifname, state, generation, address: lease.address.split("/")[0] ?? "" },
      ...{ gateway: lease.gateway ?? "", podNamespace: lease.podNamespace ?? "", podName: lease.podName ?? "" },
      podUid: lease.podUid ?? "",
      allocatedAtMs: timeOf(lease.allocatedAt),
      releasedAtMs: timeOf(lease.releasedAt),
    })),
    database,
  };
}

/** 0 for none, as messages have it. */
const timeOf = (time: string | undefined): number => Date.parse(time ?? "") || 0;

export async function askAtSocket(socket: string, readiness: boolean): Promise<NodeReport> {
  using agent = new RpcChannel(socket);
  const options = { timeoutMs: limits.statusTimeoutMs };
  const status = await agent.unary(nodeService.status, { network: "" }, options);
  const interfaces = isServing(status) ? (await agent.unary(nodeService.listInterfaces, {}, options)).interfaces : [];
  try {
    const leases = await Array.fromAsync(agent.stream(ipamService.list, { network: "" }, options));
    const database = readiness || leases.length > maxChecked ? [] : await checked(agent);
    return { status, interfaces, leases, database };
  } catch (caught) {
    // The agent's status is shown also if the store cannot be read.
    return { status, interfaces, leases: [], database: [reasonOf(caught)] };
  }
}

async function checked(agent: RpcChannel): Promise<readonly string[]> {
  const { findings } = await agent.unary(ipamService.check, {}, { timeoutMs: limits.statusTimeoutMs });
  const errors = findings.filter(({ severity }) => severity === "error");
  return errors.map(({ what, todo }) => `${what}; ${todo}`);
}

/** What is wrong with the leases of the agent at this socket, which has so many: for one who watches. */
export async function databaseAtSocket(socket: string, leases: number): Promise<readonly string[]> {
  if (leases > maxChecked) return [];
  using agent = new RpcChannel(socket);
  return await checked(agent).catch((caught: unknown) => [reasonOf(caught)]);
}

/** An earlier release does not tell its state; it has its interfaces from the first answer on. */
const isServing = ({ state }: StatusResponse): boolean => state !== "starting" && state !== "joining";

export function isWell({ status, database }: NodeReport, readiness: boolean): boolean {
  const { problems, registryTroubles, configuration } = status;
  if (readiness) return problems.every(({ advisory }) => advisory);
  return problems.length + registryTroubles.length + configuration.length + database.length === 0;
}

export function explain(caught: unknown, socket: string): string {
  const { grpcCode, message } =
    caught instanceof RpcError ? caught : { grpcCode: undefined, message: reasonOf(caught) };
  if (grpcCode === GrpcCode.unauthenticated) return message;
  if (grpcCode === GrpcCode.permissionDenied)
    return `Cannot reach the agent: this user may not connect to "${socket}" (EACCES), wanted ${whoMay}`;
  if (caught instanceof RpcError && caught.unreachable)
    return `Cannot reach the agent: nobody serves "${socket}", wanted a running "pipette agent"`;
  if (grpcCode === GrpcCode.deadlineExceeded)
    return `Cannot reach the agent: "${socket}" gives no answer within ${limits.statusTimeoutMs} ms`;
  if (grpcCode === GrpcCode.unimplemented)
    return `Cannot show the status: "${socket}" is served by an agent of another make, wanted "pipette agent"`;
  return `Cannot show the status: ${message}, wanted an answer of the agent at "${socket}"`;
}
