import type { DocumentProbe, NodeDocumentOf, NodeKind, NodesDocument } from "../../shared/documents/mod.ts";
import { formatAge } from "../../shared/terminal/table.ts";
import { amountText, type Column, listText, nothing, orNothing, podText, shortId, tookText } from "./columns.ts";

/** How documents of a kind become rows, and rows a table. */
export interface Table<D, Row> {
  readonly rowsOf: (document: D) => readonly Row[];
  /** Rows that the document left out. */
  readonly omittedOf: (document: D) => number;
  readonly columns: readonly Column<Row>[];
  /** `pods`, for "No pods". */
  readonly what: string;
}

type RowOf<K extends NodeKind> = K extends "node"
  ? NodeDocumentOf<"node">
  : K extends "addresses"
    ? NodeDocumentOf<"addresses">["pools"][number]
    : K extends "policies"
      ? NodeDocumentOf<"policies">["pods"][number]
      : K extends "flows"
        ? NodeDocumentOf<"flows">["tables"][number]
        : K extends keyof NodeDocumentOf<K>
          ? NodeDocumentOf<K>[K] extends readonly (infer Row)[]
            ? Row
            : never
          : never;

const pods: Table<NodeDocumentOf<"pods">, RowOf<"pods">> = {
  what: "pods",
  rowsOf: (document) => document.pods,
  omittedOf: ({ omitted }) => omitted,
  columns: [
    { title: "POD", of: podText },
    { title: "ADDRESSES", of: ({ addresses, ownLease }) => (ownLease ? listText(addresses) : "(delegated)") },
    { title: "INTERFACE", of: ({ hostIfname }) => hostIfname },
    { title: "PORT", of: ({ port }) => orNothing(port) },
    { title: "MAC", of: ({ mac }) => orNothing(mac) },
    { title: "NETWORK", of: ({ network }) => network },
    { title: "VNID", wide: true, of: ({ vnid }) => orNothing(vnid) },
    { title: "IFNAME", wide: true, of: ({ ifname }) => ifname },
    { title: "GATEWAY", wide: true, of: ({ gateway }) => orNothing(gateway) },
    { title: "SANDBOX", wide: true, of: ({ containerId }) => shortId(containerId) },
  ],
};

const leases: Table<NodeDocumentOf<"leases">, RowOf<"leases">> = {
  what: "leases",
  rowsOf: (document) => document.leases,
  omittedOf: ({ omitted }) => omitted,
  columns: [
    { title: "ADDRESS", of: ({ address }) => address },
    { title: "STATE", of: ({ state }) => state },
    { title: "POD", of: podText },
    { title: "NETWORK", of: ({ network }) => network },
    { title: "AGE", of: ({ allocatedAt, releasedAt }, atMs) => since(releasedAt ?? allocatedAt, atMs) },
    { title: "SANDBOX", wide: true, of: ({ containerId }) => shortId(containerId) },
    { title: "IFNAME", wide: true, of: ({ ifname }) => ifname },
    { title: "GENERATION", wide: true, of: ({ generation }) => String(generation) },
  ],
};

const addresses: Table<NodeDocumentOf<"addresses">, RowOf<"addresses">> = {
  what: "pools of addresses",
  rowsOf: ({ pools }) => pools,
  omittedOf: ({ omitted }) => omitted,
  columns: [
    { title: "NETWORK", of: ({ network }) => network },
    { title: "RANGE", of: ({ range }) => range },
    { title: "TOTAL", of: ({ total }) => total },
    { title: "ALLOCATED", of: ({ allocated }) => String(allocated) },
    { title: "RELEASING", of: ({ releasing }) => String(releasing) },
    { title: "COOLING", of: ({ cooling }) => String(cooling) },
    { title: "FREE", of: ({ free }) => free },
    { title: "GATEWAYS", wide: true, of: ({ gateways }) => listText(gateways, true) },
    { title: "EXCLUDED", wide: true, of: ({ excluded }) => excluded },
  ],
};

const history: Table<NodeDocumentOf<"history">, RowOf<"history">> = {
  what: "known holders of addresses",
  rowsOf: (document) => document.history,
  omittedOf: ({ omitted }) => omitted,
  columns: [
    { title: "ADDRESS", of: ({ address }) => address },
    { title: "POD", of: podText },
    { title: "FROM", of: ({ fromMs }) => timeText(fromMs) },
    { title: "UNTIL", of: ({ untilMs }) => (untilMs === undefined ? "now" : timeText(untilMs)) },
    { title: "FOR", of: ({ fromMs, untilMs }, atMs) => formatAge(Math.max(0, (untilMs ?? atMs) - fromMs)) },
    { title: "NETWORK", of: ({ network }) => network },
    { title: "SANDBOX", wide: true, of: ({ containerId }) => shortId(containerId) },
    { title: "IFNAME", wide: true, of: ({ ifname }) => ifname },
    { title: "POD-UID", wide: true, of: ({ podUid }) => orNothing(podUid) },
    { title: "GENERATION", wide: true, of: ({ generation }) => String(generation) },
  ],
};

const services: Table<NodeDocumentOf<"services">, RowOf<"services">> = {
  what: "services",
  rowsOf: (document) => document.services,
  omittedOf: ({ omitted }) => omitted,
  columns: [
    { title: "SERVICE", of: ({ key }) => key },
    { title: "PROTOCOL", of: ({ protocol }) => protocol },
    { title: "CLUSTER-IP", of: ({ clusterIp }) => orNothing(clusterIp) },
    { title: "PORT", of: ({ port }) => String(port) },
    {
      title: "ENDPOINTS",
      of: ({ endpoints, omittedEndpoints }) =>
        String(endpoints.filter(({ internal }) => internal).length + omittedEndpoints),
    },
    {
      title: "HERE",
      of: ({ endpoints }) => String(endpoints.filter(({ internal, local }) => internal && local).length),
    },
    { title: "REFUSED", of: ({ refused }) => orNothing(refused) },
    { title: "NODE-PORT", wide: true, of: ({ nodePort }) => (nodePort === 0 ? nothing : String(nodePort)) },
    {
      title: "OTHER-ADDRESSES",
      wide: true,
      of: ({ externalIps, ingressIps }) => listText([...externalIps, ...ingressIps]),
    },
  ],
};

const policies: Table<NodeDocumentOf<"policies">, RowOf<"policies">> = {
  what: "isolated pods",
  rowsOf: (document) => document.pods,
  omittedOf: ({ omitted }) => omitted,
  columns: [
    { title: "POD", of: podText },
    { title: "ISOLATED", of: ({ directions }) => listText(directions) },
    { title: "POLICIES", of: (row) => listText(row.policies) },
    { title: "NETWORK", wide: true, of: ({ network }) => network },
    { title: "SANDBOX", wide: true, of: ({ containerId }) => shortId(containerId) },
  ],
};

const flowTables: Table<NodeDocumentOf<"flows">, RowOf<"flows">> = {
  what: "tables",
  rowsOf: ({ tables }) => tables,
  omittedOf: () => 0,
  columns: [
    { title: "NUMBER", of: ({ number }) => orNothing(number) },
    { title: "TABLE", of: ({ name }) => name },
    { title: "FLOWS", of: (row) => String(row.flows) },
    { title: "PACKETS", of: ({ packets }) => amountText(packets) },
    { title: "BYTES", wide: true, of: ({ bytes }) => amountText(bytes) },
    { title: "DOES", of: ({ about }) => orNothing(about) },
  ],
};

type FlowRow = NodeDocumentOf<"flows">["flows"][number];

/** Of one table that was named. */
export const flowsOfTable: Table<NodeDocumentOf<"flows">, FlowRow> = {
  what: "flows",
  rowsOf: ({ flows }) => flows,
  omittedOf: ({ omitted }) => omitted,
  columns: [
    { title: "PRIORITY", of: ({ priority }) => orNothing(priority) },
    { title: "PACKETS", of: ({ packets }) => (packets === undefined ? nothing : amountText(packets)) },
    { title: "FOR", of: ({ purpose }) => orNothing(purpose) },
    { title: "MATCH", of: ({ match }) => orNothing(match) },
    { title: "ACTIONS", of: ({ actions }) => orNothing(actions) },
  ],
};

const findings: Table<NodeDocumentOf<"findings">, RowOf<"findings">> = {
  what: "findings",
  rowsOf: (document) => document.findings,
  omittedOf: ({ omitted }) => omitted,
  columns: [
    { title: "SEVERITY", of: ({ severity }) => severity },
    { title: "CODE", of: ({ code }) => code },
    { title: "WHAT", of: ({ what }) => what },
    { title: "DO", of: ({ todo }) => todo },
    { title: "WHY", wide: true, of: ({ why }) => why },
    { title: "REPAIR", wide: true, of: ({ repairable }) => (repairable ? "yes" : "no") },
  ],
};

const calls: Table<NodeDocumentOf<"calls">, RowOf<"calls">> = {
  what: "calls",
  rowsOf: (document) => document.calls,
  omittedOf: ({ omitted }) => omitted,
  columns: [
    { title: "AGO", of: ({ beganAtMs }, atMs) => formatAge(atMs - beganAtMs) },
    { title: "VERB", of: ({ verb }) => verb },
    { title: "POD", of: podText },
    { title: "TOOK", of: ({ tookMicros }) => tookText(tookMicros) },
    { title: "CODE", of: ({ code }) => String(code) },
    { title: "ERROR", of: ({ message }) => orNothing(message) },
    {
      title: "PHASES",
      wide: true,
      of: ({ phases }) =>
        listText(
          phases.map(({ phase, tookMicros }) => `${phase}=${tookText(tookMicros)}`),
          true,
        ),
    },
    { title: "SANDBOX", wide: true, of: ({ containerId }) => shortId(containerId) },
  ],
};

const peers: Table<NodeDocumentOf<"peers">, RowOf<"peers">> = {
  what: "other nodes, since this one is on its own",
  rowsOf: (document) => document.peers,
  omittedOf: ({ omitted }) => omitted,
  columns: [
    { title: "NAME", of: ({ name, self }) => (self ? `${name} (this node)` : name) },
    { title: "STATE", of: ({ state }) => state },
    { title: "REACHED", of: ({ probes = [] }) => eachText(probes, ({ state }) => state) },
    { title: "RTT", of: ({ probes = [] }) => eachText(probes, rttText) },
    { title: "SEEN", of: ({ probes = [] }, atMs) => eachText(probes, ({ seenAtMs }) => agoText(seenAtMs, atMs)) },
    { title: "LOST", of: ({ probes = [] }, atMs) => eachText(probes, (one) => lostText(one, atMs)) },
    { title: "ADDRESSES", of: (row) => listText(row.addresses) },
    { title: "SUBNETS", of: ({ subnets }) => listText(subnets) },
    { title: "MAC", wide: true, of: ({ mac }) => orNothing(mac) },
    { title: "PROBED", wide: true, of: ({ probes = [] }) => eachText(probes, ({ address }) => address) },
    { title: "PROBLEM", of: ({ problem, probes = [] }) => orNothing(problem ?? probes.find(hasReason)?.reason) },
  ],
};

const node: Table<NodeDocumentOf<"node">, RowOf<"node">> = {
  what: "nodes",
  rowsOf: (document) => [document],
  omittedOf: () => 0,
  columns: [
    { title: "NAME", of: (row) => row.node },
    { title: "STATE", of: ({ state }) => state },
    { title: "VERSION", of: ({ agentVersion }) => agentVersion },
    { title: "DATA-PATH", of: ({ dataPath }) => dataPath },
    { title: "UP", of: ({ startedAtMs }, atMs) => formatAge(atMs - startedAtMs) },
    { title: "PROBLEMS", of: ({ problems }) => (problems.length === 0 ? "none" : String(problems.length)) },
    { title: "CALLS", wide: true, of: ({ callsInFlight }) => String(callsInFlight) },
    { title: "LOG-LEVEL", wide: true, of: ({ logLevel }) => orNothing(logLevel) },
    { title: "NETWORKS", wide: true, of: ({ networks }) => listText(networks) },
  ],
};

export const tables: { readonly [K in NodeKind]: Table<NodeDocumentOf<K>, RowOf<K>> } = {
  ...{ node, pods, leases, addresses, history, services, policies, flows: flowTables, findings, calls, peers },
};

export const nodesTable: Table<NodesDocument, NodesDocument["nodes"][number]> = {
  what: "nodes",
  rowsOf: ({ nodes }) => nodes,
  omittedOf: ({ omitted }) => omitted,
  columns: [
    { title: "NAME", of: ({ name }) => name },
    { title: "READY", of: ({ ready }) => (ready === undefined ? nothing : ready ? "yes" : "no") },
    { title: "AGENT", of: ({ agentReady, state }) => agentText(agentReady, state) },
    { title: "SYSTEM", of: ({ system }) => orNothing(system) },
    { title: "ADDRESSES", of: (row) => listText(row.addresses) },
    { title: "SUBNETS", of: ({ subnets }) => listText(subnets) },
    { title: "AGENT-POD", wide: true, of: ({ agentPod }) => orNothing(agentPod) },
  ],
};

/** One value for all families where they are alike. */
function eachText(probes: readonly DocumentProbe[], of: (probe: DocumentProbe) => string): string {
  const texts = [...new Set(probes.map(of))];
  return texts.length === 0 ? nothing : texts.join(",");
}

const rttText = ({ rttMicros }: DocumentProbe): string => (rttMicros === undefined ? nothing : tookText(rttMicros));

const agoText = (ms: number | undefined, atMs: number): string =>
  ms === undefined ? nothing : formatAge(Math.max(0, atMs - ms));

/** Since when, of one that is not reached. */
const lostText = ({ state, lostSinceMs }: DocumentProbe, atMs: number): string =>
  state === "lost" || state === "silent" ? agoText(lostSinceMs, atMs) : nothing;

const hasReason = ({ reason }: DocumentProbe): boolean => reason !== undefined;

const agentText = (isReady: boolean | undefined, state: string | undefined): string =>
  isReady === undefined ? orNothing(state) : isReady ? "ready" : "not ready";

/** Of a time as RFC 3339 has it. */
function since(time: string, atMs: number): string {
  const ms = Date.parse(time);
  return Number.isNaN(ms) ? nothing : formatAge(atMs - ms);
}

/** Of milliseconds since 1970, in seconds. */
function timeText(ms: number): string {
  const time = new Date(ms);
  return Number.isNaN(time.getTime()) ? nothing : `${time.toISOString().slice(0, 19)}Z`;
}
