import { RpcChannel } from "../shared/channel/rpc-channel.ts";
import {
  documentVersion,
  type NodeDocumentOf,
  type NodeKind,
  type NodesDocument,
  type NodeTrace,
  readNodeDocument,
  readNodeTrace,
  type TraceRequest,
} from "../shared/documents/mod.ts";
import { CniCode, CniError } from "../shared/errors.ts";
import { limits } from "../shared/limits.ts";
import { whoMay } from "../shared/os/rights.ts";
import { printable } from "../shared/printable.ts";
import { documentsService } from "../shared/proto/daemon-services.ts";
import { GrpcCode, RpcError } from "../shared/rpc/rpc-error.ts";
import { type Answer, type DocumentSource, maxWaitMs, type Question } from "./document-source.ts";

/** A doctor's look takes seconds, on a busy node more. */
const answerMs = 20_000;

/** The agent of this node, by its socket or pipe: whoever may use that may ask. */
export class SocketSource implements DocumentSource {
  readonly title: string;
  readonly isLive = true;
  readonly isOneNode = true;
  readonly #socket: string;
  readonly #agent: RpcChannel;

  /** @param socket path of a unix socket, or name of a pipe */
  constructor(socket: string) {
    this.#socket = socket;
    this.#agent = new RpcChannel(socket);
    this.title = `the agent at "${socket}"`;
  }

  async nodes(signal: AbortSignal): Promise<readonly string[]> {
    const { node } = await this.#document("node", undefined, signal);
    return [node];
  }

  /** As the agent's registry knows it; without one there is just this node. */
  async cluster(signal: AbortSignal): Promise<NodesDocument> {
    const { peers, node, registry, omitted } = await this.#document("peers", undefined, signal);
    const known = peers.map(({ name, addresses, subnets, state }) => ({ name, addresses, subnets, state }));
    const nodes = known.length === 0 ? [{ name: node, addresses: [], subnets: [] }] : known;
    const source = registry === "" ? this.title : registry;
    return { kind: "nodes", version: documentVersion, source, nodes, omitted };
  }

  async get<K extends NodeKind>(node: string, question: Question<K>, signal: AbortSignal): Promise<Answer<K>> {
    const { kind, name = "", ifNotRevision = "", waitMs = 0 } = question;
    const wait = Math.min(waitMs, maxWaitMs);
    const action = `show the ${kind} of node "${node}"`;
    const timeoutMs = answerMs + wait;
    const answer = await this.#ask(action, timeoutMs, () =>
      this.#agent.unary(documentsService.get, { kind, name, ifNotRevision, waitMs: wait }, { timeoutMs, signal }),
    );
    if (answer.unchanged) return { t: "unchanged", revision: ifNotRevision };
    const document = readNodeDocument(kind, node, answer.json, this.title);
    return { t: "document", revision: answer.revision, atMs: answer.atMs, document };
  }

  async logLevel(node: string, level: string | undefined, signal: AbortSignal): Promise<string> {
    const action = `${level === undefined ? "show" : "change"} the log level of node "${node}"`;
    const request = { level: level ?? "" };
    const timeoutMs = limits.statusTimeoutMs;
    const answer = await this.#ask(action, timeoutMs, () =>
      this.#agent.unary(documentsService.logLevel, request, { timeoutMs, signal }),
    );
    return answer.level;
  }

  async trace(node: string, request: TraceRequest, signal: AbortSignal): Promise<NodeTrace> {
    const timeoutMs = answerMs + (request.t === "collect" ? request.waitMs : 0);
    const json = new TextEncoder().encode(JSON.stringify(request));
    const answer = await this.#ask(`trace packets on node "${node}"`, timeoutMs, () =>
      this.#agent.unary(documentsService.trace, { json }, { timeoutMs, signal }),
    );
    return readNodeTrace(node, answer.json, this.title);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#agent[Symbol.dispose]();
  }

  async #document<K extends NodeKind>(
    kind: K,
    node: string | undefined,
    signal: AbortSignal,
  ): Promise<NodeDocumentOf<K>> {
    const request = { kind, name: "", ifNotRevision: "", waitMs: 0 };
    const options = { timeoutMs: answerMs, signal };
    const { json } = await this.#ask(`show the ${kind} of this node`, answerMs, () =>
      this.#agent.unary(documentsService.get, request, options),
    );
    return readNodeDocument(kind, node, json, this.title);
  }

  /** @throws {CniError} a sentence for people */
  async #ask<T>(action: string, timeoutMs: number, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (caught) {
      if (!(caught instanceof RpcError)) throw caught;
      throw new CniError(CniCode.tryAgainLater, this.#sentence(caught, action, timeoutMs), { cause: caught });
    }
  }

  #sentence({ grpcCode, unreachable, message }: RpcError, action: string, timeoutMs: number): string {
    const socket = this.#socket;
    if (grpcCode === GrpcCode.unauthenticated) return message;
    if (grpcCode === GrpcCode.permissionDenied)
      return `Cannot ${action}: this user may not connect to "${socket}", wanted ${whoMay}`;
    if (unreachable) return `Cannot ${action}: nobody serves "${socket}", wanted a running "pipette agent"`;
    if (grpcCode === GrpcCode.deadlineExceeded)
      return `Cannot ${action}: "${socket}" gives no answer within ${timeoutMs} ms`;
    if (grpcCode === GrpcCode.unimplemented)
      return `Cannot ${action}: the agent at "${socket}" tells no documents, wanted one of this release`;
    // The agent's own sentence.
    if (message.startsWith("Cannot ") && !message.startsWith("Cannot call ")) return message;
    return `Cannot ${action}: ${printable(message)}`;
  }
}
