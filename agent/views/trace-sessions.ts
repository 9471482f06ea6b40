import { pause } from "../../shared/async/abortable.ts";
import {
  documentVersion,
  type NodeTrace,
  readOne,
  type StartTrace,
  type TraceRequest,
  traceRequestSchema,
} from "../../shared/documents/mod.ts";
import { CniCode, CniError } from "../../shared/errors.ts";
import type { Logger } from "../../shared/log.ts";
import { GrpcCode, RpcError } from "../../shared/rpc/rpc-error.ts";
import type { DataPathName } from "../config/agent-config.ts";
import { insteadOfTracing, type PacketTrace, type PacketTracing } from "../datapath/tracing.ts";

interface TraceSources {
  /** The node's name. */
  readonly node: string;
  readonly dataPath: DataPathName;
  /** It has Open vSwitch, which follows packets once it is set up. */
  readonly hasSwitch: boolean;
  readonly logger: Logger;
  tracing(): PacketTracing | undefined;
}

interface Session {
  readonly trace: PacketTrace;
  /** By `performance.now`, when somebody last asked. */
  askedAt: number;
  /** Requests that wait for it. */
  waiting: number;
}

/** One request: a trace names some dozens of addresses and nodes. */
const maxRequestBytes = 32 * 1024;
/** Traces that are begun in a minute: people look at one after the other. */
const mostAMinute = 120;
/** A trace that nobody asks for any more has ended so long after, and is forgotten. */
const forgottenMs = 20_000;
const action = "trace packets";

/** The traces of this node that somebody has begun: each ends by its time, by whoever began it, or when nobody asks. */
export class TraceSessions implements AsyncDisposable {
  readonly #sources: TraceSources;
  readonly #sessions = new Map<string, Session>();
  readonly #sweep: ReturnType<typeof setInterval>;
  #begun: number[] = [];

  constructor(sources: TraceSources) {
    this.#sources = sources;
    this.#sweep = setInterval(() => this.#forget(), 1_000);
    this.#sweep.unref();
  }

  /**
   * @param json as `traceRequestSchema` has it
   * @param by who wants it, for the log
   * @returns a `NodeTrace` as JSON
   * @throws {RpcError | CniError} for what cannot be done
   */
  async answer(json: Uint8Array, by: string, gone: AbortSignal): Promise<Uint8Array> {
    const request = readRequest(json);
    return new TextEncoder().encode(JSON.stringify(await this.#do(request, by, gone)));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#sweep);
    const all = [...this.#sessions.values()];
    this.#sessions.clear();
    await Promise.all(all.map(({ trace }) => trace[Symbol.asyncDispose]()));
  }

  async #do(request: TraceRequest, by: string, gone: AbortSignal): Promise<NodeTrace> {
    if (request.t === "start") return await this.#start(request, by);
    const { session: id } = request;
    const session = this.#sessions.get(id);
    if (session === undefined)
      throw new RpcError(GrpcCode.notFound, `Cannot ${action}: this node has no trace of that name any more`);
    session.askedAt = performance.now();
    if (request.t === "end") {
      await session.trace[Symbol.asyncDispose]();
      const last = this.#told(id, session.trace);
      this.#sessions.delete(id);
      return last;
    }
    await this.#changed(session, request.after, request.waitMs, gone);
    return this.#told(id, session.trace);
  }

  async #start(request: StartTrace, by: string): Promise<NodeTrace> {
    const { node, logger } = this.#sources;
    const tracing = this.#sources.tracing();
    if (tracing === undefined) throw noTracing(this.#sources);
    const now = performance.now();
    this.#begun = this.#begun.filter((at) => now - at < 60_000);
    if (this.#begun.length >= mostAMinute)
      throw new RpcError(
        GrpcCode.resourceExhausted,
        `Cannot ${action}: ${mostAMinute} were begun on node "${node}" within a minute, wanted fewer; ask again later`,
      );
    this.#begun.push(now);
    const { role, sourcePod = "", source = [], destination = [], protocol = "", seconds } = request;
    logger.info("a trace begins", { by, role, sourcePod, source, destination, protocol, seconds });
    const trace = await tracing.start(request);
    const id = crypto.randomUUID();
    this.#sessions.set(id, { trace, askedAt: performance.now(), waiting: 0 });
    return this.#told(id, trace);
  }

  async #changed(session: Session, after: number, waitMs: number, gone: AbortSignal): Promise<void> {
    const { trace } = session;
    const until = performance.now() + waitMs;
    session.waiting++;
    try {
      while (trace.revision <= after && trace.ended === undefined && !gone.aborted) {
        const leftMs = until - performance.now();
        if (leftMs <= 0) return;
        await Promise.race([trace.changed(), pause(leftMs, gone)]);
      }
    } finally {
      session.waiting--;
      session.askedAt = performance.now();
    }
  }

  #told(session: string, trace: PacketTrace): NodeTrace {
    const { ended, revision, passed, paused, packets } = trace;
    return {
      ...{ kind: "node-trace", version: documentVersion, node: this.#sources.node, session },
      state: ended === undefined ? "looking" : "ended",
      ...(ended === undefined || ended === "" ? {} : { reason: ended }),
      ...{ revision, passed, paused, packets },
      dataPath: this.#sources.tracing()?.title ?? this.#sources.dataPath,
    };
  }

  #forget(): void {
    const now = performance.now();
    for (const [id, { trace, askedAt, waiting }] of this.#sessions) {
      if (waiting > 0 || now - askedAt < forgottenMs) continue;
      this.#sessions.delete(id);
      void trace[Symbol.asyncDispose]();
    }
  }
}

/** @throws {RpcError} */
function noTracing({ node, dataPath, hasSwitch }: TraceSources): RpcError {
  if (hasSwitch)
    return new RpcError(
      GrpcCode.unavailable,
      `Cannot ${action}: the data path of node "${node}" is not set up yet: ${insteadOfTracing.ovs}`,
    );
  const is = `the data path "${dataPath}" of node "${node}" follows no packets, wanted one with "ovs"`;
  return new RpcError(GrpcCode.failedPrecondition, `Cannot ${action}: ${is}; ${insteadOfTracing[dataPath]}`);
}

function readRequest(json: Uint8Array): TraceRequest {
  try {
    return readOne<TraceRequest>(traceRequestSchema, json, "the request for a trace", maxRequestBytes);
  } catch (caught) {
    if (caught instanceof CniError && caught.code === CniCode.decode)
      throw new RpcError(GrpcCode.invalidArgument, caught.message);
    throw caught;
  }
}
