import type { NodeDocumentOf, NodeKind } from "../../shared/documents/mod.ts";
import type { ApiClient } from "../../shared/kubernetes/mod.ts";
import { reasonOf } from "../../shared/reason.ts";
import type { DocumentSource } from "../document-source.ts";
import type { Asked, Facts, PodName, PodState, RuntimeSays, Statement } from "./facts.ts";
import { podText } from "./facts.ts";
import { podEvents, podState } from "./pod-object.ts";
import { statementsIn } from "./statements.ts";

/** Each source for itself: who waits for a pod's network wants what can be had at once. */
const sourceMs = 5_000;
/** A doctor looks several times, some seconds in all. */
const findingsMs = 20_000;

/** Looks at the node from the node itself, by what needs no agent. */
export interface LocalNode {
  /** @throws what keeps it from looking */
  look(what: "configuration" | "doctor" | "log", signal: AbortSignal): Promise<readonly Statement[]>;
}

/** Who can be asked. */
export interface WhoCanBeAsked {
  /** Absent: no API server is known. */
  readonly client?: ApiClient;
  /** Opens the way to the agent of a node, or to a bundle; a caller's to close. @throws why it cannot be gone */
  readonly open?: (node: string | undefined) => Promise<DocumentSource>;
  /** Absent: no node is looked at but by its agent. */
  readonly local?: LocalNode;
  /** Asks the container runtime of this machine. Absent: nobody may, or it is another machine's. @throws why it cannot be asked */
  readonly runtime?: (pod: PodName | undefined, signal: AbortSignal) => Promise<RuntimeSays>;
  /** Whether this machine is that node. */
  readonly isHere?: (node: string) => boolean;
  /** Of whoever asks: they have seen it elsewhere. */
  readonly said?: readonly Statement[];
  /** Why one of them is not there. */
  readonly failures?: readonly Asked[];
}

const documentKinds = ["node", "calls", "pods", "leases", "addresses", "policies", "findings"] as const;
type Documents = { readonly [K in (typeof documentKinds)[number]]?: NodeDocumentOf<K> };

/** Asks everybody at once, each within its time. What cannot be asked is named, and keeps nobody else from answering. */
export async function gather(
  who: WhoCanBeAsked,
  pod: PodName | undefined,
  wantedNode: string | undefined,
  nowMs = Date.now(),
): Promise<Facts> {
  const asked: Asked[] = [...(who.failures ?? [])];
  const { state, events } = await askApiServer(who.client, pod, asked);
  const node = wantedNode ?? (typeof state === "object" ? state.node : undefined);
  const { documents, at, away } = await askAgent(who.open, node, pod, asked);
  const isHere = node === undefined || who.isHere?.(node) === true;
  const local = isHere ? await askLocally(who.local, documents, asked) : { statements: [], isNode: false };
  const runtime = await askTheRuntime(
    who.runtime,
    isHere && (local.isNode || documents.node !== undefined),
    node,
    pod,
    asked,
  );
  // Who asks from a machine of their own has no agent there, and nothing is wrong with that.
  const silence = isHere && !local.isNode && who.local !== undefined ? [] : away;
  return factsOf({ pod, nowMs, state, node: at ?? node, asked, away: silence, runtime }, documents, [
    ...(who.said ?? []),
    ...events,
    ...local.statements,
  ]);
}

/** It answers on its own node alone. */
async function askTheRuntime(
  ask: WhoCanBeAsked["runtime"],
  isHere: boolean,
  node: string | undefined,
  pod: PodName | undefined,
  asked: Asked[],
): Promise<RuntimeSays | undefined> {
  if (ask === undefined) return undefined;
  const source = "the container runtime";
  if (isHere) return await attempt(source, asked, sourceMs, (signal) => ask(pod, signal));
  const whose = node === undefined ? "a node" : `node "${node}"`;
  asked.push({ source, failure: `that of ${whose} answers there alone, wanted "pipette why" on that node` });
  return undefined;
}

async function askApiServer(
  client: ApiClient | undefined,
  pod: PodName | undefined,
  asked: Asked[],
): Promise<{ readonly state: PodState | "absent" | undefined; readonly events: readonly Statement[] }> {
  if (client === undefined || pod === undefined) return { state: undefined, events: [] };
  const [state, events] = await Promise.all([
    attempt("the API server of the pod", asked, sourceMs, (signal) => podState(client, pod, signal)),
    attempt("the API server of its events", asked, sourceMs, (signal) => podEvents(client, pod, signal)),
  ]);
  return { state, events: events ?? [] };
}

async function askAgent(
  open: WhoCanBeAsked["open"],
  wanted: string | undefined,
  pod: PodName | undefined,
  asked: Asked[],
): Promise<{ readonly documents: Documents; readonly at?: string; readonly away: readonly string[] }> {
  if (open === undefined) return { documents: {}, away: [] };
  const before = asked.length;
  const away = (): readonly string[] =>
    asked.slice(before).flatMap(({ failure }) => (failure === undefined ? [] : [failure]));
  const source = await attempt(`the agent of ${wanted ?? "this node"}`, asked, sourceMs, () => open(wanted));
  if (source === undefined) return { documents: {}, away: away() };
  // A way to the agent that was found has asked nobody yet.
  asked.splice(before);
  const { title } = source;
  const known =
    wanted === undefined ? await attempt(title, asked, sourceMs, (signal) => source.nodes(signal)) : [wanted];
  const [node] = known ?? [];
  if (node === undefined) return { documents: {}, away: away() };
  // Without a pod's node each would have to be asked; more than one is for --node to choose.
  if (known !== undefined && known.length > 1) {
    asked.push({ source: title, failure: `it has ${known.length} nodes, wanted --node NAME` });
    return { documents: {}, away: [] };
  }
  const got: Partial<Record<NodeKind, unknown>> = {};
  const ask = async <K extends (typeof documentKinds)[number]>(kind: K): Promise<void> => {
    const name = pod !== undefined && ["calls", "pods", "leases"].includes(kind) ? podText(pod) : undefined;
    const answer = await attempt(`${kind} by ${title}`, asked, kind === "findings" ? findingsMs : sourceMs, (signal) =>
      source.get(node, { kind, ...(name === undefined ? {} : { name }) }, signal),
    );
    if (answer?.t === "document") got[kind] = answer.document;
  };
  await ask("node");
  // An agent that does not say what it is says nothing else either, and each would take its time.
  if (got.node !== undefined) await Promise.all(documentKinds.filter((kind) => kind !== "node").map(ask));
  return { documents: got as Documents, at: node, away: got.node === undefined ? away() : [] };
}

/** What needs no agent is looked at where there is none that answers: it is slower, and the agent's own word is newer. */
async function askLocally(
  local: LocalNode | undefined,
  documents: Documents,
  asked: Asked[],
): Promise<{ readonly statements: readonly Statement[]; readonly isNode: boolean }> {
  if (local === undefined) return { statements: [], isNode: false };
  const statements: Statement[] = [];
  let isNode = false;
  const wanted = documents.node === undefined ? (["configuration", "log", "doctor"] as const) : [];
  for (const what of documents.node !== undefined && documents.findings === undefined
    ? (["doctor"] as const)
    : wanted) {
    const withinMs = what === "doctor" ? findingsMs : sourceMs;
    const found = await attempt(`this node's ${what}`, asked, withinMs, (signal) => local.look(what, signal));
    if (what === "configuration") isNode = found !== undefined;
    statements.push(...(found ?? []));
  }
  return { statements, isNode };
}

/** @returns `undefined` where it could not be asked, which `asked` tells then */
async function attempt<T>(
  source: string,
  asked: Asked[],
  withinMs: number,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T | undefined> {
  const signal = AbortSignal.timeout(withinMs);
  try {
    const gone = new Promise<never>((_, reject) =>
      signal.addEventListener("abort", () => reject(new Error(`there is no answer after ${withinMs} ms`)), {
        once: true,
      }),
    );
    const answer = await Promise.race([work(signal), gone]);
    asked.push({ source });
    return answer;
  } catch (caught) {
    asked.push({ source, failure: reasonOf(caught) });
    return undefined;
  }
}

function factsOf(
  head: Pick<Facts, "nowMs" | "state" | "node" | "asked" | "runtime"> & {
    readonly pod: PodName | undefined;
    readonly away: readonly string[];
  },
  documents: Documents,
  said: readonly Statement[],
): Facts {
  const { pod, away, ...rest } = head;
  const isOf = ({ podNamespace, podName }: { readonly podNamespace?: string; readonly podName?: string }): boolean =>
    pod !== undefined && podNamespace === pod.namespace && podName === pod.name;
  const calls = (documents.calls?.calls ?? []).filter(isOf).toSorted((a, b) => b.beganAtMs - a.beganAtMs);
  const leases = (documents.leases?.leases ?? []).filter(isOf);
  const attachments = (documents.pods?.pods ?? []).filter(isOf);
  const heard: Omit<Facts, "statements"> = {
    ...rest,
    ...(pod === undefined ? {} : { pod }),
    ...{ calls, leases, attachments },
    pools: documents.addresses?.pools ?? [],
    isolation: (documents.policies?.pods ?? []).filter(isOf),
    agent: documents.node,
    findings: documents.findings?.findings ?? [],
  };
  return { ...heard, statements: [...statementsIn(heard, away), ...said] };
}
