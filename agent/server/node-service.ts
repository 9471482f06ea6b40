import { type IpamConfig, parseIpamConfig, type RangeUsage } from "../../ipam/mod.ts";
import { gcAnswer } from "../../ipam/service/mod.ts";
import { latestVersion } from "../../shared/cni/versions.ts";
import { CniCode, CniError } from "../../shared/errors.ts";
import type { NodeProblem, RegistryTrouble, StatusResponse } from "../../shared/proto/pipette-messages.ts";
import { nodeService } from "../../shared/proto/services.ts";
import { Fields } from "../../shared/schema/json-fields.ts";
import { type CallContext, type Rpc, rpc } from "../../shared/server/handlers.ts";
import type { NetworkConfig } from "../config/agent-config.ts";
import { ipamSection } from "../config/network-sections.ts";
import { missingPlugins } from "../conflist/listed-plugins.ts";
import type { PeerProbes } from "../reachability/mod.ts";
import { type AgentContext, collect, type Janitor } from "../reconcile/mod.ts";
import type { NodeServices } from "../services/mod.ts";
import { type Gate, measure } from "./cni-service.ts";

/** What `Status` tells about the agent itself. */
export interface NodeInfo {
  readonly version: string;
  readonly dataPath: string;
  readonly startedAtMs: number;
  callsInFlight(): number;
  /** Why ADDs cannot be served; nothing while the agent is ready. */
  notReady(): string | undefined;
  /** Why no new pod of the first network gets an address, where it is so. */
  refused(): string | undefined;
  /** Describes the node's membership, for people; empty if it has none. */
  cluster(): string;
  /** Describes the network policies that are enforced, for people; empty if none are. */
  policies(): string;
  /** What is not in force of them as it is to be, in sentences. */
  policyDifferences(): Promise<readonly string[]>;
  /** The services that are balanced; absent: none are. */
  services(): Pick<NodeServices, "summary" | "degraded" | "differences" | "fault"> | undefined;
  /** `starting`, `joining`, `ready` or `stopping`. */
  state(): string;
  /** What does not work with the registry now. */
  troubles(): readonly RegistryTrouble[];
  /** What is known of the ways to other nodes' pods; absent: nobody probes. */
  probes(): Pick<PeerProbes, "counts" | "troubles"> | undefined;
  /** Records of the registry that are not accepted, in sentences. */
  refusals(): readonly string[];
  /**
   * What is wrong with the present agent.yaml or the runtime's file, in sentences; the agent and running pods are not
   * affected.
   */
  configuration(): Promise<readonly string[]>;
}

/** Our own service: GC, STATUS and queries of people. Failures are gRPC statuses. */
export function nodeRpcs(context: AgentContext, janitor: Janitor, gate: Gate, info: NodeInfo): readonly Rpc[] {
  return [
    rpc(nodeService.gc, (request, call) =>
      measured(context, "GC", call, async () => {
        gate.requireReady();
        const collected = await collect(context, request, call);
        const { removed, failures } = collected;
        call.log.info("served", { verb: "GC", network: request.network, removed: removed.length, failures });
        return { answer: gcAnswer(collected), code: failures.length === 0 ? 0 : CniCode.tryAgainLater };
      }),
    ),
    rpc(nodeService.status, async ({ network }, call) => {
      const answered = async () => {
        const answer = await statusOf(context, janitor, info, network);
        call.log.debug("served", { verb: "STATUS", network, problems: answer.problems });
        return { answer, code: statusCode(answer.problems) };
      };
      // Without a network it is people's.
      return network === "" ? (await answered()).answer : await measured(context, "STATUS", call, answered);
    }),
    rpc(nodeService.listInterfaces, async () => {
      const interfaces = await context.dataPath.list();
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

/** Counts a call with the code that the plugin makes of its answer. */
async function measured<T>(
  context: AgentContext,
  verb: "GC" | "STATUS",
  call: CallContext,
  work: () => Promise<{ readonly answer: T; readonly code: number }>,
): Promise<T> {
  const startedMs = performance.now();
  try {
    const { answer, code } = await work();
    measure(context, verb, code, startedMs, call);
    return answer;
  } catch (caught) {
    measure(context, verb, CniError.from(caught).code, startedMs, call);
    throw caught;
  }
}

/** What STATUS fails with: the worst of them. */
function statusCode(problems: readonly NodeProblem[]): number {
  const codes = problems.map(({ code }) => code);
  if (codes.includes(CniCode.limitedConnectivity)) return CniCode.limitedConnectivity;
  return codes.length === 0 ? 0 : CniCode.notAvailable;
}

/** @param network empty: all of them, and all that is for people; else what a runtime asks every few seconds */
export async function statusOf(
  context: AgentContext,
  janitor: Pick<Janitor, "pendingDetaches">,
  info: NodeInfo,
  network: string,
): Promise<StatusResponse> {
  const isOfRuntime = network !== "";
  const isForPeople = !isOfRuntime && info.notReady() === undefined;
  const problems = [...(await outages(context, info, network))];
  // Not reported to a runtime, which would take the node out of service and evict its pods.
  if (isForPeople) problems.push(...lacks(context));
  return {
    problems,
    version: info.version,
    pid: process.pid,
    startedAtMs: info.startedAtMs,
    dataPath: info.dataPath,
    networks: context.config.networks.map(({ name }) => name),
    // Without this call itself.
    callsInFlight: Math.max(0, info.callsInFlight() - 1),
    departing: janitor.pendingDetaches(),
    cluster: info.cluster(),
    shortcomings: isForPeople ? await shortcomings(context, info) : [],
    refusals: isOfRuntime ? [] : info.refusals(),
    state: info.state(),
    registryTroubles: isOfRuntime ? [] : info.troubles(),
    configuration: isOfRuntime ? [] : await info.configuration(),
    policies: info.policies(),
    policyDifferences: isForPeople ? await info.policyDifferences() : [],
    services: info.services()?.summary ?? "",
    serviceDifferences: isForPeople ? await differences(info) : [],
    servicesFault: info.services()?.fault ?? "",
    peers: isOfRuntime ? undefined : info.probes()?.counts(),
    peerTroubles: isOfRuntime ? [] : (info.probes()?.troubles() ?? []),
  };
}

/**
 * Why the node as a whole has no network for a pod: for these STATUS fails, its kubelet calls the node not ready, and
 * what lasts ends with all of its pods evicted (docs/troubleshooting.md, "What STATUS fails for").
 */
export async function outages(
  context: AgentContext,
  info: Pick<NodeInfo, "notReady" | "refused">,
  asked: string,
): Promise<readonly NodeProblem[]> {
  const notReady = info.notReady();
  if (notReady !== undefined) return [outage(notReady)];
  const networks = context.config.networks.filter((network) => asked === "" || network.name === asked);
  const problems: NodeProblem[] = [];
  if (networks.length === 0) {
    const names = context.config.networks.map((network) => `"${network.name}"`).join(", ");
    problems.push(outage(`Cannot serve network "${asked}": the agent has ${names}, wanted one of these`));
  }
  problems.push(...(await context.dataPath.problems()).map((problem) => ({ ...problem, advisory: false })));
  const [first] = context.config.networks;
  const refused = networks.some((network) => network === first) ? info.refused() : undefined;
  if (refused !== undefined) problems.push(outage(refused));
  return problems;
}

const shortcomings = async ({ dataPath }: AgentContext, info: NodeInfo): Promise<readonly string[]> => [
  ...(await dataPath.degraded()),
  ...(info.services()?.degraded ?? []),
];

const differences = async (info: NodeInfo): Promise<readonly string[]> => (await info.services()?.differences()) ?? [];

/** Why new pods get no network while running pods are fine and must not be evicted. */
const lacks = (context: AgentContext): readonly NodeProblem[] =>
  [...missingPlugins(context.config), ...lackedAddresses(context)].map(lack);

function lackedAddresses(context: AgentContext): readonly string[] {
  const { allocator, config } = context;
  try {
    allocator.requireWritable();
    for (const network of config.networks) allocator.requireComplete(network.name);
    return config.networks.flatMap((network) => exhausted(context, network));
  } catch (caught) {
    return [CniError.from(caught).message];
  }
}

const outage = (message: string): NodeProblem => ({ code: CniCode.notAvailable, message, advisory: false });
const lack = (message: string): NodeProblem => ({ code: CniCode.notAvailable, message, advisory: true });

/** One sentence for each range set without a free address. */
function exhausted(context: AgentContext, network: NetworkConfig): readonly string[] {
  return usageOf(context, network)
    .filter((usage) => usage.free <= 0n && usage.cooling === 0 && !context.allocator.hasStaleLeases(network.name))
    .map(
      ({ range, total }) =>
        `Cannot give a new pod of network "${network.name}" an address: all ${total} addresses of ${range} are taken`,
    );
}

/** What is free and what is not in the network's own ranges. */
export const usageOf = (context: AgentContext, network: NetworkConfig): readonly RangeUsage[] =>
  context.allocator.usage(network.name, ipamConfigFor(context, network));

/** The network's own ranges, as an ADD without a configuration of its own would have them. */
export function ipamConfigFor({ config }: Pick<AgentContext, "config">, network: NetworkConfig): IpamConfig {
  const conf = new Fields({ name: network.name, ipam: ipamSection(config, network) });
  return parseIpamConfig({ conf, network: network.name, version: latestVersion, args: "" });
}
