import { operatorToken } from "../../shared/access/mod.ts";
import {
  documentVersion,
  maxDocumentBytes,
  type NodeKind,
  type NodesDocument,
  type NodeTrace,
  readNodeDocument,
  readNodeTrace,
  type TraceRequest,
} from "../../shared/documents/mod.ts";
import { CniCode, CniError } from "../../shared/errors.ts";
import { type ApiClient, ApiError, bytesOf, Patience } from "../../shared/kubernetes/mod.ts";
import { parseJson } from "../../shared/schema/json.ts";
import { isObject, show } from "../../shared/schema/json-fields.ts";
import {
  type Answer,
  type DocumentSource,
  maxWaitMs,
  type PodName,
  type PodPlace,
  type Question,
} from "../document-source.ts";
import { podState } from "../why/pod-object.ts";
import { type AgentPod, listAgentPods } from "./agent-pods.ts";
import { type Account, AgentTokens } from "./agent-tokens.ts";
import { listClusterNodes } from "./nodes.ts";

/** Beyond the time that a question may wait: a doctor's look takes seconds, on a busy node more. */
const answerMs = 20_000;
/** An agent's pod is looked up again after this time: it may have been replaced. */
const podMs = 10_000;
/** With room for what is around a document. */
const maxAnswerBytes = maxDocumentBytes + 4096;

/**
 * A cluster by its API server, with the rights of whoever asks: it passes questions on to the agents' pods. An agent
 * gets a token that is good for nothing else, and never the caller's own; what it answers is not believed.
 */
export class ClusterSource implements DocumentSource {
  readonly title: string;
  readonly isLive = true;
  readonly #client: ApiClient;
  readonly #namespace: string;
  readonly #tokens: AgentTokens;
  readonly #pods = new Map<string, { readonly until: number; readonly pod: AgentPod }>();

  /** @param namespace in which Pipette is */
  constructor(client: ApiClient, namespace: string) {
    this.#client = client;
    this.#namespace = namespace;
    this.#tokens = new AgentTokens(client, namespace);
    this.title = client.server;
  }

  /** For what the API server knows itself: its client, which is closed with this, and where Pipette is. */
  get api(): { readonly client: ApiClient; readonly namespace: string } {
    return { client: this.#client, namespace: this.#namespace };
  }

  /** Those that have an agent. */
  async nodes(signal: AbortSignal): Promise<readonly string[]> {
    const pods = await listAgentPods(this.#client, this.#namespace, undefined, signal);
    for (const pod of pods.values()) this.#remember(pod);
    return [...pods.keys()];
  }

  async cluster(signal: AbortSignal): Promise<NodesDocument> {
    const [{ nodes, omitted }, pods] = await Promise.all([
      listClusterNodes(this.#client, signal),
      listAgentPods(this.#client, this.#namespace, undefined, signal),
    ]);
    const known = nodes.map((node) => {
      const pod = pods.get(node.name);
      return pod === undefined
        ? node
        : { ...node, agentPod: `${this.#namespace}/${pod.name}`, agentReady: pod.isReady };
    });
    return { kind: "nodes", version: documentVersion, source: this.title, nodes: known, omitted };
  }

  async get<K extends NodeKind>(node: string, question: Question<K>, signal: AbortSignal): Promise<Answer<K>> {
    const { kind, name, ifNotRevision, waitMs = 0 } = question;
    const wait = Math.min(waitMs, maxWaitMs);
    const query = new URLSearchParams({
      ...(name === undefined ? {} : { name }),
      ...(ifNotRevision === undefined ? {} : { ifNotRevision, waitMs: String(wait) }),
    });
    const action = `show the ${kind} of node "${node}"`;
    const path = `/v1/documents/${kind}?${query}`;
    const said = await this.#ask(
      node,
      { path, action, account: "read", method: "GET", withinMs: answerMs + wait },
      signal,
    );
    const { revision, atMs, unchanged, document } = said;
    if (typeof revision !== "string" || revision.length > 100) throw strange(action, "revision", revision);
    if (unchanged === true) return { t: "unchanged", revision };
    if (typeof atMs !== "number" || !Number.isSafeInteger(atMs) || atMs < 0) throw strange(action, "atMs", atMs);
    const bytes = new TextEncoder().encode(JSON.stringify(document ?? null));
    return { t: "document", revision, atMs, document: readNodeDocument(kind, node, bytes, `node "${node}"`) };
  }

  /**
   * What the API server calls a node's agent where it passes a question on: `https:NAME:PORT`.
   * @throws {CniError} where there is none that can be asked
   */
  proxyNameOf(node: string, signal: AbortSignal): Promise<string> {
    return this.#proxyName(node, `ask node "${node}"`, signal);
  }

  async logLevel(node: string, level: string | undefined, signal: AbortSignal): Promise<string> {
    const action = `${level === undefined ? "show" : "change"} the log level of node "${node}"`;
    const path = `/v1/log-level${level === undefined ? "" : `?${new URLSearchParams({ level })}`}`;
    const way =
      level === undefined
        ? ({ account: "read", method: "GET" } as const)
        : ({ account: "write", method: "PUT" } as const);
    const { level: now } = await this.#ask(node, { path, action, ...way, withinMs: answerMs }, signal);
    if (typeof now !== "string" || now.length > 20) throw strange(action, "level", now);
    return now;
  }

  async trace(node: string, request: TraceRequest, signal: AbortSignal): Promise<NodeTrace> {
    const action = `trace packets on node "${node}"`;
    const path = `/v1/trace?${new URLSearchParams({ request: JSON.stringify(request) })}`;
    const withinMs = answerMs + (request.t === "collect" ? request.waitMs : 0);
    const said = await this.#ask(node, { path, action, account: "write", method: "PUT", withinMs }, signal);
    return readNodeTrace(node, new TextEncoder().encode(JSON.stringify(said)), `node "${node}"`);
  }

  async placeOf(pod: PodName, signal: AbortSignal): Promise<PodPlace | "absent"> {
    const state = await podState(this.#client, pod, signal);
    if (state === "absent") return state;
    const { node, addresses, hostNetwork } = state;
    return node === undefined ? "absent" : { node, addresses, hostNetwork };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#client[Symbol.asyncDispose]();
  }

  /** @throws {CniError} in a sentence about that node */
  async #ask(node: string, ask: AgentAsk, signal: AbortSignal): Promise<Readonly<Record<string, unknown>>> {
    const { path, action, account, method, withinMs } = ask;
    const name = await this.#proxyName(node, action, signal);
    const token = await this.#tokens.get(node, account, signal);
    const to = `/api/v1/namespaces/${this.#namespace}/pods/${name}/proxy${path}`;
    using patience = new Patience();
    try {
      const passed = { [operatorToken.header]: token };
      const answer = await this.#client.stream({ path: to, action, signal, passed }, patience, withinMs, method);
      patience.last(withinMs, `did not end the answer of node "${node}" within ${withinMs} ms`);
      const text = new TextDecoder().decode(await abortedWith(bytesOf(answer, maxAnswerBytes), patience.signal));
      const value = parseJson(text);
      if (isObject(value)) return value;
      throw strange(action, "its answer", value);
    } catch (caught) {
      // Perhaps another pod is there by now.
      this.#pods.delete(node);
      throw agentError(caught, action, node);
    }
  }

  async #proxyName(node: string, action: string, signal: AbortSignal): Promise<string> {
    const { name, port } = await this.#podOf(node, action, signal);
    if (port !== undefined) return `https:${name}:${port}`;
    const is = `its agent "${name}" answers nobody from afar`;
    throw new CniError(
      CniCode.notAvailable,
      `Cannot ${action}: ${is}, wanted "metrics" in its configuration (metrics.enabled of the chart)`,
    );
  }

  async #podOf(node: string, action: string, signal: AbortSignal): Promise<AgentPod> {
    const known = this.#pods.get(node);
    if (known !== undefined && performance.now() < known.until) return known.pod;
    const pod = (await listAgentPods(this.#client, this.#namespace, node, signal)).get(node);
    if (pod !== undefined) return this.#remember(pod);
    const is = `namespace "${this.#namespace}" has no pod of an agent for it`;
    throw new CniError(
      CniCode.notAvailable,
      `Cannot ${action}: ${is}, wanted one, or --agents-namespace with another namespace`,
    );
  }

  #remember(pod: AgentPod): AgentPod {
    this.#pods.set(pod.node, { until: performance.now() + podMs, pod });
    return pod;
  }
}

interface AgentAsk {
  readonly path: string;
  readonly action: string;
  readonly account: Account;
  readonly method: "GET" | "PUT";
  readonly withinMs: number;
}

const strange = (action: string, what: string, value: unknown): CniError =>
  new CniError(CniCode.decode, `Cannot ${action}: the agent answers nonsense: ${what} is ${show(value)}`);

/** What ends while a body is read is the patience, not the connection. */
async function abortedWith<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  try {
    return await work;
  } catch (caught) {
    throw signal.aborted ? signal.reason : caught;
  }
}

/** The API server and the agent behind it answer in the same way; who it was, the reason tells. */
function agentError(caught: unknown, action: string, node: string): CniError {
  if (!(caught instanceof ApiError)) {
    if (caught instanceof CniError) return caught;
    const reason = CniError.from(caught, action).message;
    const is = reason.startsWith("Cannot ") ? reason.slice(reason.indexOf(": ") + 2) : reason;
    return new CniError(CniCode.decode, `Cannot ${action}: its answer cannot be read: ${is}`, { cause: caught });
  }
  const { status, is } = caught;
  const reason = is.replace(/^the API server answers \d+: /, "");
  const told =
    status === 403 || status === 401
      ? `it is refused (${status}): ${reason}`
      : status === 503 || status === 502
        ? `node "${node}" cannot be reached by the API server (${status}): ${reason}`
        : is;
  return new CniError(CniCode.tryAgainLater, `Cannot ${action}: ${told}`, { cause: caught });
}
