import type { LeaseState } from "../../../ipam/mod.ts";
import { podTitle } from "../../../shared/cni/pod-name.ts";
import type { LeaseMessage } from "../../../shared/proto/ipam-messages.ts";
import type { NodeInterface, StatusResponse } from "../../../shared/proto/pipette-messages.ts";
import { printable } from "../../../shared/terminal/printable.ts";
import { formatAge, formatTable } from "../../../shared/terminal/table.ts";
import type { NodeReport } from "./node-report.ts";

const leaseStates = ["allocated", "releasing", "cooling"] as const satisfies readonly LeaseState[];

/** One node, for people. @param wide with whole identifiers, and of each lease its age and generation */
export function nodeText(report: NodeReport, nowMs: number, wide = false): string {
  const { status: answer, leases, interfaces } = report;
  const told = wordsOf(report, nowMs);
  const out = [
    printable(
      `pipette agent ${answer.version}, process ${answer.pid}, ${stateOf(answer)}up ${formatAge(nowMs - answer.startedAtMs)}, data path ${answer.dataPath}`,
    ),
    `calls in flight ${answer.callsInFlight}, attachments being taken away ${answer.departing}`,
    ...[answer.cluster, peersText(answer), answer.policies, answer.services]
      .filter((sentence) => sentence !== "")
      .map(printable),
    "",
    formatTable(networkRows(answer, leases, interfaces)),
    formatTable(interfaceRows(report, nowMs, wide)),
    ...(told.length === 0 ? ["no problems"] : told),
  ];
  return `${out.join("\n")}\n`;
}

/** Many nodes: a line of each, and below what is wrong. */
export function nodesText(
  all: readonly { readonly node: string; readonly report: NodeReport }[],
  nowMs: number,
  wide: boolean,
): string {
  const titles = ["NODE", "STATE", "VERSION", "DATA-PATH", "UP", "INTERFACES", "LEASES", "PROBLEMS"];
  const rows = all.map(({ node, report: { status, leases, interfaces, database } }) => [
    ...[node, status.state === "" ? "ready" : status.state, status.version, status.dataPath],
    ...[formatAge(nowMs - status.startedAtMs), String(interfaces.length)],
    String(leases.filter(({ state }) => state === "allocated").length),
    String(status.problems.length + status.registryTroubles.length + status.configuration.length + database.length),
    ...(wide ? [String(status.callsInFlight), String(status.departing), status.networks.join(",")] : []),
  ]);
  const more = wide ? ["CALLS", "LEAVING", "NETWORKS"] : [];
  const told = all.flatMap(({ node, report }) => wordsOf(report, nowMs).map((words) => `${printable(node)}: ${words}`));
  return `${formatTable([[...titles, ...more], ...rows])}${told.length === 0 ? "" : `\n${told.join("\n")}\n`}`;
}

/** What is wrong, a line each, safe to print. */
function wordsOf({ status: answer, database }: NodeReport, nowMs: number): readonly string[] {
  return [
    ...answer.problems.map(
      ({ code, message, advisory }) => `problem ${code}${advisory ? " (of new pods only)" : ""}: ${message}`,
    ),
    ...answer.registryTroubles.map(
      ({ what, reason, sinceMs }) =>
        `registry: cannot ${what} since ${timeText(sinceMs)} (${formatAge(nowMs - sinceMs)}): ${reason}`,
    ),
    ...answer.configuration.map((sentence) => `configuration: ${sentence}`),
    ...database.map((sentence) => `leases: ${sentence}`),
    ...answer.shortcomings.map((sentence) => `shortcoming: ${sentence}`),
    ...answer.policyDifferences.map((sentence) => `shortcoming: of network policies: ${sentence}`),
    ...(answer.servicesFault === ""
      ? []
      : [`shortcoming: services are not followed, and those in force stay: ${answer.servicesFault}`]),
    ...answer.serviceDifferences.map((sentence) => `shortcoming: of services: ${sentence}`),
    ...answer.refusals.map((sentence) => `refused: ${sentence}`),
    ...answer.peerTroubles.map(({ message, sinceMs }) => `peers: ${message} (since ${timeText(sinceMs)})`),
  ].map(printable);
}

/** An agent from elsewhere may name a time that no calendar has. */
const timeText = (ms: number): string =>
  Number.isFinite(new Date(ms).getTime()) ? new Date(ms).toISOString() : String(ms);

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
const stateOf = ({ state }: StatusResponse): string => (state === "" || state === "ready" ? "" : `${state}, `);

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

function interfaceRows({ leases, interfaces }: NodeReport, nowMs: number, wide: boolean): string[][] {
  const ownerOf = (one: { readonly network: string; readonly containerId: string; readonly ifname: string }): string =>
    [one.network, one.containerId, one.ifname].join("\n");
  const allocated = Map.groupBy(
    leases.filter(({ state }) => state === "allocated"),
    ownerOf,
  );
  return [
    ["INTERFACE", "NETWORK", "CONTAINER", "IFNAME", "ADDRESSES", "POD", ...(wide ? ["AGE", "GENERATION"] : [])],
    ...interfaces.map((entry) => {
      const own = allocated.get(ownerOf(entry)) ?? [];
      const [first] = own;
      const pod =
        first === undefined || first.podName === ""
          ? ""
          : podTitle({ namespace: first.podNamespace, name: first.podName });
      const addresses =
        own.length > 0 ? own.map((lease) => lease.address).join(",") : entry.ownLease ? "-" : "(delegated)";
      const more =
        first === undefined ? ["-", "-"] : [formatAge(nowMs - first.allocatedAtMs), String(first.generation)];
      const container = wide ? entry.containerId : entry.containerId.slice(0, 13);
      const line = [entry.hostIfname, entry.network, container, entry.ifname, addresses, pod];
      return wide ? [...line.slice(0, 5), pod === "" ? "-" : pod, ...more] : line;
    }),
  ];
}
