import type { LeaseState } from "../../../ipam/mod.ts";
import { openSource, type Way, wayOptions } from "../../../operator/ways.ts";
import { RpcChannel } from "../../../shared/channel/rpc-channel.ts";
import { podTitle } from "../../../shared/cni/pod-name.ts";
import type { LeasesDocument, NodeDocument, PodsDocument } from "../../../shared/documents/mod.ts";
import { CniError } from "../../../shared/errors.ts";
import { limits } from "../../../shared/limits.ts";
import { paths } from "../../../shared/os/paths.ts";
import { whoMay } from "../../../shared/os/rights.ts";
import { ipamService } from "../../../shared/proto/daemon-services.ts";
import type { LeaseMessage } from "../../../shared/proto/ipam-messages.ts";
import type { NodeInterface, StatusResponse } from "../../../shared/proto/pipette-messages.ts";
import { nodeService } from "../../../shared/proto/services.ts";
import { reasonOf } from "../../../shared/reason.ts";
import { GrpcCode, RpcError } from "../../../shared/rpc/rpc-error.ts";
import { defineCommand } from "../../../shared/terminal/command.ts";
import { exitStatus } from "../../../shared/terminal/exit-status.ts";
import { formatJson, printable, printableLines } from "../../../shared/terminal/printable.ts";
import { formatAge, formatTable } from "../../../shared/terminal/table.ts";
import type { TerminalIo } from "../../../shared/terminal/terminal-io.ts";

const leaseStates = ["allocated", "releasing", "cooling"] as const satisfies readonly LeaseState[];

/**
 * The largest number of leases that is checked: checking more would delay the agent's calls, and "pipette ipam check"
 * does it without the agent.
 */
const maxChecked = 5_000;

interface NodeReport {
  readonly status: StatusResponse;
  readonly leases: readonly LeaseMessage[];
  /** Empty too while the agent cannot tell, since it has not begun to serve. */
  readonly interfaces: readonly NodeInterface[];
  /** What is wrong with the lease database, in sentences; a probe does not ask for it. */
  readonly database: readonly string[];
}

export const statusCommand = defineCommand({
  action: "show the status",
  about: "Shows what the agent of this node says: networks, leases, interfaces, problems.",
  options: {
    ...wayOptions,
    socket: { value: "PATH", of: "file", help: `where it listens (default ${paths.agentSocket})` },
    node: { value: "NAME", help: "of this node, by the API server or from a bundle" },
    json: { help: "everything, as one JSON object" },
    readiness: { help: "for a probe: status 0 also where only new pods are refused, as by a pool that is full" },
  },
  exits: {
    0: "no problem; shortcomings of single pods or other nodes, and what is refused of the registry, are none",
    2: "another node cannot be asked, or wrong arguments",
    1: "problems, a registry that is lost, a configuration that is refused or not in place, errors in the lease database, an agent that is not ready, or none",
  },
  run: async ({ options }, io) => {
    const { socket = paths.agentSocket, json, readiness } = options;
    if (isElsewhere(options)) return await showElsewhere(options, io);
    try {
      const report = await ask(socket, readiness);
      io.stdout(json ? formatJson(report) : asText(report, Date.now()));
      return isWell(report, readiness) ? exitStatus.done : exitStatus.failed;
    } catch (caught) {
      io.stderr(`${explain(caught, socket)}\n`);
      return exitStatus.failed;
    }
  },
});

/** What tells that it is not about the agent at a socket. */
const isElsewhere = ({ node, kubeconfig, context, bundle }: Elsewhere): boolean =>
  [node, kubeconfig, context, bundle].some((one) => one !== undefined);

interface Elsewhere extends Way {
  readonly node: string | undefined;
  readonly json: boolean;
  readonly readiness: boolean;
}

/** Of one node that is not asked by its socket, from its documents. */
async function showElsewhere(options: Elsewhere, io: TerminalIo): Promise<number> {
  try {
    const { documentsOfNode, theNode } = await import("../../../operator/mod.ts");
    await using source = await openSource(options, true, io);
    const { signal } = new AbortController();
    const node = await theNode(source, options.node, signal);
    const found = await documentsOfNode(source, node, ["node", "pods", "leases"], signal);
    const report = reportOf(found.node, found.pods, found.leases);
    io.stdout(options.json ? formatJson(report) : asText(report, Date.now()));
    return isWell(report, options.readiness) ? exitStatus.done : exitStatus.failed;
  } catch (caught) {
    io.stderr(`${printableLines(CniError.from(caught, "show the status").message)}\n`);
    return exitStatus.cannotTell;
  }
}

/** The same as the agent's own answers say. */
function reportOf(
  { agentVersion, ...node }: NodeDocument,
  { pods }: PodsDocument,
  { leases }: LeasesDocument,
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
    database: [],
  };
}

/** 0 for none, as messages have it. */
const timeOf = (time: string | undefined): number => Date.parse(time ?? "") || 0;

async function ask(socket: string, readiness: boolean): Promise<NodeReport> {
  using agent = new RpcChannel(socket);
  const options = { timeoutMs: limits.statusTimeoutMs };
  const status = await agent.unary(nodeService.status, { network: "" }, options);
  const interfaces = isServing(status) ? (await agent.unary(nodeService.listInterfaces, {}, options)).interfaces : [];
  try {
    const leases = await Array.fromAsync(agent.stream(ipamService.list, { network: "" }, options));
    if (readiness || leases.length > maxChecked) return { status, interfaces, leases, database: [] };
    const { findings } = await agent.unary(ipamService.check, {}, options);
    const errors = findings.filter(({ severity }) => severity === "error");
    return { status, interfaces, leases, database: errors.map(({ what, todo }) => `${what}; ${todo}`) };
  } catch (caught) {
    // The agent's status is shown also if the store cannot be read.
    return { status, interfaces, leases: [], database: [reasonOf(caught)] };
  }
}

/** An earlier release does not tell its state; it has its interfaces from the first answer on. */
const isServing = ({ state }: StatusResponse): boolean => state !== "starting" && state !== "joining";

function isWell({ status, database }: NodeReport, readiness: boolean): boolean {
  const { problems, registryTroubles, configuration } = status;
  if (readiness) return problems.every(({ advisory }) => advisory);
  return problems.length + registryTroubles.length + configuration.length + database.length === 0;
}

function explain(caught: unknown, socket: string): string {
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

function asText({ status: answer, leases, interfaces, database }: NodeReport, nowMs: number): string {
  const told = [
    ...answer.problems.map(
      ({ code, message, advisory }) => `problem ${code}${advisory ? " (of new pods only)" : ""}: ${message}`,
    ),
    ...answer.registryTroubles.map(
      ({ what, reason, sinceMs }) =>
        `registry: cannot ${printable(what)} since ${new Date(sinceMs).toISOString()} (${formatAge(nowMs - sinceMs)}): ${printable(reason)}`,
    ),
    ...answer.configuration.map((sentence) => `configuration: ${printable(sentence)}`),
    ...database.map((sentence) => `leases: ${printable(sentence)}`),
    ...answer.shortcomings.map((sentence) => `shortcoming: ${printable(sentence)}`),
    ...answer.policyDifferences.map((sentence) => `shortcoming: of network policies: ${printable(sentence)}`),
    ...(answer.servicesFault === ""
      ? []
      : [`shortcoming: services are not followed, and those in force stay: ${printable(answer.servicesFault)}`]),
    ...answer.serviceDifferences.map((sentence) => `shortcoming: of services: ${printable(sentence)}`),
    ...answer.refusals.map((sentence) => `refused: ${printable(sentence)}`),
    ...answer.peerTroubles.map(
      ({ message, sinceMs }) => `peers: ${printable(message)} (since ${new Date(sinceMs).toISOString()})`,
    ),
  ];
  const out = [
    `pipette agent ${answer.version}, process ${answer.pid}, ${stateOf(answer)}up ${formatAge(nowMs - answer.startedAtMs)}, data path ${answer.dataPath}`,
    `calls in flight ${answer.callsInFlight}, attachments being taken away ${answer.departing}`,
    ...[answer.cluster, peersText(answer), answer.policies, answer.services]
      .filter((sentence) => sentence !== "")
      .map(printable),
    "",
    formatTable(networkRows(answer, leases, interfaces)),
    formatTable(interfaceRows(leases, interfaces)),
    ...(told.length === 0 ? ["no problems"] : told),
  ];
  return `${out.join("\n")}\n`;
}

/** Of other nodes' pods, as they are probed; empty where nobody does, or there are none. */
function peersText({ peers }: StatusResponse): string {
  const { reachable = 0, lost = 0, silent = 0, unknown = 0 } = peers ?? {};
  const all = reachable + lost + silent + unknown;
  if (all === 0) return "";
  const others = Object.entries({ lost, "never reached": silent, "not asked yet": unknown });
  const told = others.filter(([, count]) => count > 0).map(([word, count]) => `${count} ${word}`);
  return `pods of ${reachable} of ${all} other nodes are reached${told.length === 0 ? "" : `, ${told.join(", ")}`}`;
}

/** The state is shown unless it is ready. */
const stateOf = ({ state }: StatusResponse): string =>
  state === "" || state === "ready" ? "" : `${printable(state)}, `;

function networkRows(
  answer: StatusResponse,
  leases: readonly LeaseMessage[],
  interfaces: readonly NodeInterface[],
): string[][] {
  // The store may also hold leases of networks that the agent does not serve.
  const names = [...new Set([...answer.networks, ...leases.map((lease) => lease.network)])];
  const count = (name: string, state: string): string =>
    String(leases.filter((lease) => lease.network === name && lease.state === state).length);
  return [
    ["NETWORK", ...leaseStates.map((state) => state.toUpperCase()), "INTERFACES"],
    ...names.map((name) => [
      answer.networks.includes(name) ? name : `${name} (not served)`,
      ...leaseStates.map((state) => count(name, state)),
      String(interfaces.filter((entry) => entry.network === name).length),
    ]),
  ];
}

function interfaceRows(leases: readonly LeaseMessage[], interfaces: readonly NodeInterface[]): string[][] {
  return [
    ["INTERFACE", "NETWORK", "CONTAINER", "IFNAME", "ADDRESSES", "POD"],
    ...interfaces.map((entry) => {
      const own = leases.filter(
        (lease) =>
          lease.state === "allocated" &&
          lease.network === entry.network &&
          lease.containerId === entry.containerId &&
          lease.ifname === entry.ifname,
      );
      const [first] = own;
      const pod =
        first === undefined || first.podName === ""
          ? ""
          : podTitle({ namespace: first.podNamespace, name: first.podName });
      const addresses =
        own.length > 0 ? own.map((lease) => lease.address).join(",") : entry.ownLease ? "-" : "(delegated)";
      return [entry.hostIfname, entry.network, entry.containerId.slice(0, 13), entry.ifname, addresses, pod];
    }),
  ];
}
