import { hasSuspects, parseIpamConfig } from "../../ipam/mod.ts";
import { type Collected, gcAnswer } from "../../ipam/service/mod.ts";
import { containerIdRule, networkNameRule, wrongContainerId, wrongNetworkName } from "../../shared/cni/names.ts";
import { ownerFields, ownerKey } from "../../shared/cni/owner-key.ts";
import type { Owner } from "../../shared/cni/types.ts";
import { latestVersion } from "../../shared/cni/versions.ts";
import { CniCode, CniError } from "../../shared/errors.ts";
import { uptimeMs } from "../../shared/os/uptime.ts";
import type { GcRequest, NodeProblem, RegistryTrouble } from "../../shared/proto/pipette-messages.ts";
import { nodeService } from "../../shared/proto/services.ts";
import { reasonOf } from "../../shared/reason.ts";
import { Fields, show } from "../../shared/schema/json-fields.ts";
import { type CallContext, type Rpc, rpc } from "../../shared/server/handlers.ts";
import type { NetworkConfig } from "../config/agent-config.ts";
import { ipamSection } from "../config/network-sections.ts";
import { missingPlugins } from "../conflist/listed-plugins.ts";
import type { AgentParts } from "../reconcile/agent-parts.ts";
import { departedOwners, detachAndEnd, finishDeparted } from "../reconcile/departed.ts";
import type { Janitor } from "../reconcile/janitor.ts";
import type { Gate } from "./cni-service.ts";

/** What `Status` tells about the agent itself. */
export interface NodeInfo {
  readonly version: string;
  readonly dataPath: string;
  readonly startedAtMs: number;
  callsInFlight(): number;
  /** Why no ADD can work yet, or no more; nothing while the agent is ready. */
  notReady(): string | undefined;
  /** Why no new pod of the first network gets an address, where it is so. */
  refused(): string | undefined;
  /** This node among the others, for people; empty where it is not one of many, or has not joined. */
  cluster(): string;
  /** `starting`, `joining`, `ready` or `stopping`. */
  state(): string;
  /** What does not work with the registry now. */
  troubles(): readonly RegistryTrouble[];
  /** What it does not take from the registry, in sentences. */
  refusals(): readonly string[];
  /** What is wrong with agent.yaml or the runtime's file as they are now, in sentences; the agent and pods that run go on. */
  configuration(): Promise<readonly string[]>;
}

/** Our own service beside the reference system's: GC, STATUS and what people ask. Failures are gRPC statuses. */
export function nodeRpcs(parts: AgentParts, janitor: Janitor, gate: Gate, info: NodeInfo): readonly Rpc[] {
  return [
    rpc(nodeService.gc, async (request, call) => {
      gate.requireReady();
      const collected = await collect(parts, request, call);
      const { removed, failures } = collected;
      call.log.info("served", { verb: "GC", network: request.network, removed: removed.length, failures });
      return gcAnswer(collected);
    }),
    rpc(nodeService.status, async (request, call) => {
      const isOfRuntime = request.network !== "";
      const problems = [...(await outages(parts, info, request.network))];
      // No word of these to a runtime: it would take the node out of service, and its pods with it.
      if (!isOfRuntime && info.notReady() === undefined) problems.push(...lacks(parts));
      call.log.debug("served", { verb: "STATUS", network: request.network, problems });
      return {
        problems,
        version: info.version,
        pid: process.pid,
        startedAtMs: info.startedAtMs,
        dataPath: info.dataPath,
        networks: parts.config.networks.map((network) => network.name),
        // This call is one of them, and nobody means it.
        callsInFlight: Math.max(0, info.callsInFlight() - 1),
        departing: janitor.departing(),
        cluster: info.cluster(),
        // Of a person: who asks for one network is a runtime, every few seconds.
        shortcomings: !isOfRuntime && info.notReady() === undefined ? await parts.dataPath.shortcomings() : [],
        refusals: isOfRuntime ? [] : info.refusals(),
        state: info.state(),
        registryTroubles: isOfRuntime ? [] : info.troubles(),
        configuration: isOfRuntime ? [] : await info.configuration(),
      };
    }),
    rpc(nodeService.listInterfaces, async () => {
      const interfaces = await parts.dataPath.list();
      return {
        interfaces: interfaces.map(({ owner, hostIfname, ownLease }) => ({
          network: owner.network,
          containerId: owner.sandboxId,
          ifname: owner.ifname,
          hostIfname,
          ownLease,
        })),
      };
    }),
  ];
}

/**
 * GC: what the runtime does not list goes. Goes on after a failure and reports it (specification
 * 1.1.0, "GC"); the janitor tries again what failed.
 */
export async function collect(parts: AgentParts, request: GcRequest, call: CallContext): Promise<Collected> {
  const { network } = request;
  if (wrongNetworkName(network) !== undefined) throw wrong("network", network, networkNameRule);
  const keep = new Set<string>();
  for (const { containerId, ifname } of request.valid) {
    if (wrongContainerId(containerId) !== undefined) throw wrong("container_id", containerId, containerIdRule);
    keep.add(ownerKey({ network, sandboxId: containerId, ifname }));
  }
  // The list of a caller that has gone may be old: what has come since would be taken for a leftover.
  if (call.signal.aborted)
    throw new CniError(CniCode.tryAgainLater, "Cannot run GC: its caller has gone, wanted it to wait for the answer");
  const valid = request.valid.map(({ containerId, ifname }) => ({ containerId, ifname }));
  const attachedThen = new Map(parts.attached);
  const { startedUptimeMs: began = Number.POSITIVE_INFINITY } = call;
  parts.allocator.retain(network, valid, "releasing", (uptimeMs() ?? began) - began);
  const cameSince = (owner: Owner): boolean => (parts.attached.get(ownerKey(owner)) ?? 0) > began;
  const stale = (await parts.dataPath.list())
    .filter(({ owner }) => owner.network === network && !keep.has(ownerKey(owner)) && !cameSince(owner))
    .map(({ owner }) => owner);
  const removed: Owner[] = [];
  const failures = new Map<string, string>();
  const attempt = async (owner: Owner, work: () => Promise<boolean>): Promise<void> => {
    try {
      if (await work()) removed.push(owner);
    } catch (caught) {
      const text = reasonOf(caught);
      failures.set(ownerKey(owner), `${owner.sandboxId} ${owner.ifname}: ${text}`);
      call.log.error("GC could not take an attachment away", { ...ownerFields(owner), error: text });
    }
  };
  for (const owner of stale) await attempt(owner, () => removeStale(parts, owner, attachedThen.get(ownerKey(owner))));
  const departed = departedOwners(parts, network).filter((owner) => !failures.has(ownerKey(owner)));
  for (const owner of departed) await attempt(owner, () => finishDeparted(parts, owner));
  return {
    removed: removed.map(({ sandboxId, ifname }) => ({ containerId: sandboxId, ifname })),
    failures: [...failures.values()],
  };
}

/** @param attachedThen what `attached` had of it when the list came: an ADD that has ended since leaves something else */
function removeStale(parts: AgentParts, owner: Owner, attachedThen: number | undefined): Promise<boolean> {
  return parts.lanes.run(ownerKey(owner), { what: `GC of "${owner.sandboxId}"` }, async () => {
    // Taken again since the list was made: then it is no leftover. Where another plugin keeps the address no lease says so.
    if (parts.allocator.find(owner).length > 0 || parts.attached.get(ownerKey(owner)) !== attachedThen) return false;
    parts.leftover.set(ownerKey(owner), owner);
    await detachAndEnd(parts, owner);
    return true;
  });
}

/**
 * Why the node as a whole has no network for a pod: for these STATUS fails, its kubelet calls the node not ready, and
 * what lasts ends with all of its pods evicted (docs/troubleshooting.md, "What STATUS fails for").
 */
export async function outages(
  parts: AgentParts,
  info: Pick<NodeInfo, "notReady" | "refused">,
  asked: string,
): Promise<readonly NodeProblem[]> {
  const notReady = info.notReady();
  if (notReady !== undefined) return [outage(notReady)];
  const networks = parts.config.networks.filter((network) => asked === "" || network.name === asked);
  const problems: NodeProblem[] = [];
  if (networks.length === 0) {
    const names = parts.config.networks.map((network) => `"${network.name}"`).join(", ");
    problems.push(outage(`Cannot serve network "${asked}": the agent has ${names}, wanted one of these`));
  }
  problems.push(...(await parts.dataPath.problems()).map((problem) => ({ ...problem, advisory: false })));
  const [first] = parts.config.networks;
  const refused = networks.some((network) => network === first) ? info.refused() : undefined;
  if (refused !== undefined) problems.push(outage(refused));
  return problems;
}

/** Why new pods get no network, while those that run are well and better off here than evicted. */
const lacks = (parts: AgentParts): readonly NodeProblem[] =>
  [...missingPlugins(parts.config), ...lackedAddresses(parts)].map(lack);

function lackedAddresses(parts: AgentParts): readonly string[] {
  const { allocator, config } = parts;
  try {
    allocator.requireWritable();
    for (const network of config.networks) allocator.requireComplete(network.name);
    return config.networks.flatMap((network) => exhausted(parts, network));
  } catch (caught) {
    return [CniError.from(caught).message];
  }
}

const outage = (message: string): NodeProblem => ({ code: CniCode.notAvailable, message, advisory: false });
const lack = (message: string): NodeProblem => ({ code: CniCode.notAvailable, message, advisory: true });

/** One sentence for each range set without a free address. */
function exhausted(parts: AgentParts, network: NetworkConfig): readonly string[] {
  const conf = new Fields({ name: network.name, ipam: ipamSection(parts.config, network) });
  const config = parseIpamConfig({ conf, network: network.name, version: latestVersion, args: "" });
  return parts.allocator
    .usage(network.name, config)
    .filter((usage) => usage.free <= 0n && usage.cooling === 0 && !hasSuspects(parts.allocator, network.name))
    .map(
      ({ range, total }) =>
        `Cannot give a new pod of network "${network.name}" an address: all ${total} addresses of ${range} are taken, wanted a free one`,
    );
}

const wrong = (name: string, value: string, wanted: string): CniError =>
  new CniError(CniCode.invalidEnvironment, `Cannot read the GC request: "${name}" is ${show(value)}, wanted ${wanted}`);
