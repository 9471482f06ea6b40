import { type Reach, Refusal } from "../../shared/access/mod.ts";
import type { Exchange } from "../../shared/https/mod.ts";
import type { ObjectMeta } from "../../shared/proto/control-plane-messages.ts";
import { noTraffic } from "../reports/mod.ts";
import { type ApiKind, objectBytes, type WatchedResource } from "../watches/mod.ts";
import { readEvaluation, readReports, readStats, readStatus } from "./bodies.ts";
import { collections, visibleState } from "./collections.ts";
import { antreaGroup, pipetteGroup } from "./discovery.ts";
import { acceptedEncoding, contentTypes, jsonType } from "./encoding.ts";
import { answerEvaluation, evaluationKind } from "./evaluation.ts";
import { selectedNode, serveWatch } from "./node-watch.ts";
import type { ServedState } from "./served-state.ts";

/** A request of somebody who may ask for this, as far as the API server says. */
interface Asked {
  readonly exchange: Exchange;
  readonly state: ServedState;
  readonly reach: Reach;
  /** Of the object; empty for all. */
  readonly name: string;
}

type Handler = (asked: Asked) => Promise<void> | void;

const read = (Object.keys(collections) as WatchedResource[]).flatMap((resource) => [
  [`${antreaGroup.group} ${resource} watch`, watchOf(resource)] as const,
  [`${antreaGroup.group} ${resource} list`, listOf(resource)] as const,
  [`${antreaGroup.group} ${resource} get`, getOf(resource)] as const,
]);

/** By group, resource and verb. */
export const handlers: ReadonlyMap<string, Handler> = new Map<string, Handler>([
  ...read,
  [`${pipetteGroup.group} nodepolicies watch`, watchOf(undefined)],
  [`${pipetteGroup.group} policystats list`, listStats],
  [`${pipetteGroup.group} policyreports create`, takeReports],
  [`${pipetteGroup.group} policyreports get`, tellReports],
  [`${pipetteGroup.group} policyreports list`, listTraffic],
  [`${antreaGroup.group} networkpolicies/status create`, takeStatus],
  [`${antreaGroup.group} networkpolicies/status get`, tellStatus],
  [`${antreaGroup.group} nodestatssummaries create`, takeStats],
  [`${antreaGroup.group} networkpolicyevaluation create`, evaluateFor],
]);

function watchOf(resource: WatchedResource | undefined): Handler {
  return ({ exchange, state, reach }) => {
    const node = selectedNode(exchange.query);
    if (node === undefined) throw new Refusal(400, "wanted the field selector nodeName=NODE");
    holdTo(reach, node);
    serveWatch(exchange, state.watches, { node, resource, encoding: acceptedEncoding(exchange) });
  };
}

/** As Antrea's: the field selector says nothing here. A node gets its own part. */
function listOf(resource: WatchedResource): Handler {
  return ({ exchange, state, reach }) => {
    const { list, messages } = collections[resource];
    const metadata = { resourceVersion: state.watches.version };
    answer(exchange, list, { metadata, items: [...messages(visibleState(state.computation, reach))] });
  };
}

function getOf(resource: WatchedResource): Handler {
  return ({ exchange, state, reach, name }) => {
    const { kind, messages } = collections[resource];
    for (const message of messages(visibleState(state.computation, reach)))
      if ((message as { readonly metadata: ObjectMeta }).metadata.name === name) return answer(exchange, kind, message);
    throw new Refusal(404, `there is no ${kind.name} "${name}"`);
  };
}

async function takeStatus({ exchange, state: { reports }, reach, name }: Asked): Promise<void> {
  const { metadata, nodes } = await readStatus(exchange);
  if (metadata.name !== name)
    throw new Refusal(400, `the status is of "${metadata.name.slice(0, 253)}", not of "${name}"`);
  for (const { nodeName } of nodes) holdTo(reach, nodeName);
  if (!reports.has(name)) throw new Refusal(404, `there is no NetworkPolicy "${name}"`);
  for (const node of nodes) reports.enforced(name, node);
  succeed(exchange);
}

async function tellStatus({ exchange, state: { reports }, reach, name }: Asked): Promise<void> {
  holdTo(reach, undefined);
  if (!reports.has(name)) throw new Refusal(404, `there is no NetworkPolicy "${name}"`);
  const metadata = { name, creationTimestamp: null };
  const status = {
    kind: "NetworkPolicyStatus",
    apiVersion: apiVersion(antreaGroup),
    metadata,
    nodes: await reports.nodesOf(name),
  };
  exchange.answer(200, jsonType, JSON.stringify(status));
}

async function takeStats({ exchange, state: { reports }, reach }: Asked): Promise<void> {
  const { metadata, networkPolicies } = await readStats(exchange);
  holdTo(reach, metadata?.name);
  for (const { networkPolicy, trafficStats } of networkPolicies)
    if (networkPolicy !== undefined && trafficStats !== undefined) reports.count(networkPolicy.uid, trafficStats);
  const summary = {
    kind: "NodeStatsSummary",
    apiVersion: apiVersion(antreaGroup),
    metadata: { creationTimestamp: null },
  };
  exchange.answer(201, jsonType, JSON.stringify(summary));
}

async function listStats({ exchange, state: { reports, computation, watches }, reach }: Asked): Promise<void> {
  holdTo(reach, undefined);
  const traffic = await reports.traffic();
  const items = computation.everywhere().policies.map(({ uid, namespace, name }) => ({
    metadata: { name: uid, creationTimestamp: null },
    networkPolicy: { namespace, name, uid },
    ...(traffic.get(uid) ?? noTraffic),
  }));
  const metadata = { resourceVersion: watches.version };
  const list = { kind: "PolicyStatsList", apiVersion: apiVersion(pipetteGroup), metadata, items };
  exchange.answer(200, jsonType, JSON.stringify(list));
}

/** From another controller, as what follows: RBAC gives nobody else the right, so that these are held to no node. */
async function takeReports({ exchange, state: { reports } }: Asked): Promise<void> {
  const untaken = reports.take(await readReports(exchange));
  exchange.answer(201, jsonType, JSON.stringify({ ...reportsKind, untaken }));
}

function tellReports({ exchange, state: { reports }, name }: Asked): void {
  exchange.answer(200, jsonType, JSON.stringify({ ...reportsKind, nodes: reports.nodesHere(name) }));
}

function listTraffic({ exchange, state: { reports } }: Asked): void {
  const items = reports
    .trafficHere()
    .entries()
    .map(([uid, traffic]) => ({ uid, ...traffic }));
  exchange.answer(200, jsonType, JSON.stringify({ ...reportsKind, items: [...items] }));
}

async function evaluateFor({ exchange, state, reach }: Asked): Promise<void> {
  holdTo(reach, undefined);
  const asked = await readEvaluation(exchange);
  answer(exchange, evaluationKind, answerEvaluation(state, asked, exchange.query), 201);
}

/** @param node absent: this concerns all @throws {Refusal} 403 for who may know of one node only, and it is another */
function holdTo(reach: Reach, node: string | undefined): void {
  if (reach.t === "all nodes" || (reach.t === "node" && reach.node === node)) return;
  const own = reach.t === "node" ? `of node "${reach.node}"` : "of no pod that is known";
  throw new Refusal(403, `this token is ${own}, and good for nothing else`);
}

const apiVersion = ({ group, version }: typeof antreaGroup): string => `${group}/${version}`;

const reportsKind = { kind: "PolicyReports", apiVersion: apiVersion(pipetteGroup) };

function answer<M>(exchange: Exchange, kind: ApiKind<M>, message: M, status = 200): void {
  const encoding = acceptedEncoding(exchange);
  exchange.answer(status, contentTypes[encoding], objectBytes(kind, message, encoding));
}

function succeed(exchange: Exchange): void {
  const status = { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", code: 201 };
  exchange.answer(201, jsonType, JSON.stringify(status));
}
