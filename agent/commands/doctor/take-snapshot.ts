import { loadCheck, readBootId } from "../../../ipam/mod.ts";
import { CniError } from "../../../shared/errors.ts";
import { limits } from "../../../shared/limits.ts";
import { nodeService } from "../../../shared/proto/services.ts";
import { reasonOf } from "../../../shared/reason.ts";
import { callUnary } from "../../../shared/rpc/call.ts";
import type { AgentConfig } from "../../config/agent-config.ts";
import type { Finding } from "./finding.ts";
import type { NodeSnapshot, SeenAgent, SeenInterface } from "./node-snapshot.ts";
import type { RuntimeList } from "./runtime-list.ts";

/** A snapshot of the node, and what is wrong with the sources themselves. */
export interface TakenSnapshot {
  readonly snapshot: NodeSnapshot;
  readonly findings: readonly Finding[];
}

/** Asks every source once. Changes nothing. @throws {CniError | NetlinkError} where this process may not look */
export async function takeSnapshot(config: AgentConfig, runtime: RuntimeList | undefined): Promise<TakenSnapshot> {
  const { networks, janitorIntervalMs, dataPath, ovs } = config;
  // Leases first, because an ADD creates them before its interface, and a DEL ends them after it.
  const { problem, ...stored } = await lookAtLeases(config.dataDir);
  const agent = await askAgent(config.socket);
  const kernel = dataPath === "hns" ? undefined : (await import("./kernel-snapshot.ts")).kernelSnapshot();
  const [network] = networks;
  const hasSwitch = dataPath === "ovs" && ovs !== undefined && network !== undefined;
  const seen = hasSwitch ? await (await import("./switch-snapshot.ts")).switchSnapshot(ovs, network.bridge) : undefined;
  const snapshot: NodeSnapshot = {
    nowMs: Date.now(),
    bootId: readBootId(),
    networks: networks.map(({ name }) => name),
    janitorIntervalMs,
    agent,
    ...stored,
    interfaces: kernel?.interfaces ?? (agent.t === "answers" ? await interfacesOf(config.socket) : undefined),
    halfMade: kernel?.halfMade ?? [],
    ...(kernel === undefined ? { namespaceAddresses: new Set(), bareNamespaces: [] } : await lookIntoNamespaces()),
    ...(seen?.seen === undefined ? {} : { switch: seen.seen }),
    ...(runtime === undefined ? {} : { runtime }),
  };
  return { snapshot, findings: [...(problem === undefined ? [] : [unreadable(problem)]), ...(seen?.findings ?? [])] };
}

async function lookIntoNamespaces(): Promise<Pick<NodeSnapshot, "namespaceAddresses" | "bareNamespaces">> {
  const { addressesInNamespaces, bareNamespaces } = await import("../../protocols/netlink/mod.ts");
  return { namespaceAddresses: await addressesInNamespaces(), bareNamespaces: bareNamespaces() };
}

async function lookAtLeases(
  dataDir: string,
): Promise<Pick<NodeSnapshot, "leases" | "pendingDetaches"> & { readonly problem?: string }> {
  const { StoreSnapshot, databaseIn, requireRights } = await loadCheck();
  requireRights(databaseIn(dataDir));
  try {
    using snapshot = await StoreSnapshot.open(databaseIn(dataDir));
    if (snapshot === undefined) return { leases: [], pendingDetaches: [] };
    // Cooling leases are left out: there may be very many, and nothing has to agree with them.
    const leases = Iterator.from(snapshot.leases()).filter(({ state }) => state !== "cooling");
    return { leases: [...leases], pendingDetaches: snapshot.pendingDetaches().map(({ owner }) => owner) };
  } catch (caught) {
    if (caught instanceof CniError) return { leases: undefined, pendingDetaches: [], problem: caught.message };
    throw caught;
  }
}

const unreadable = (problem: string): Finding => ({
  severity: "error",
  code: "leases-unreadable",
  what: "The leases cannot be read, so that nothing was compared with them",
  why: problem,
  todo: 'look at "pipette ipam check"',
  evidence: "",
});

async function askAgent(socket: string): Promise<SeenAgent> {
  try {
    const options = { timeoutMs: limits.statusTimeoutMs };
    return { t: "answers", status: await callUnary(socket, nodeService.status, { network: "" }, options) };
  } catch (caught) {
    return { t: "away", reason: reasonOf(caught) };
  }
}

/** Asks the agent, because only it knows the owners of HNS endpoints. */
async function interfacesOf(socket: string): Promise<readonly SeenInterface[] | undefined> {
  try {
    const options = { timeoutMs: limits.statusTimeoutMs };
    const { interfaces } = await callUnary(socket, nodeService.listInterfaces, {}, options);
    return interfaces.map(({ network, containerId, ifname, hostIfname, ownLease }) => ({
      owner: { network, sandboxId: containerId, ifname },
      hostIfname,
      ownLease,
      index: 0,
      addresses: undefined,
    }));
  } catch {
    return undefined;
  }
}
