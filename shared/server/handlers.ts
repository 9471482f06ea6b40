import { randomUUID } from "node:crypto";
import type { EndSignal } from "../async/late-signal.ts";
import { CniCode, CniError } from "../errors.ts";
import { limits } from "../limits.ts";
import type { Logger } from "../log.ts";
import { callTimes, type Method } from "../proto/services.ts";
import { WireError } from "../proto/wire.ts";
import { GrpcCode, RpcError } from "../rpc/rpc-error.ts";
import type { CallTracker } from "./call-tracker.ts";
import type { CallListener, ServerCall } from "./http2/server-stream.ts";

/** What a handler knows of the call around its request. */
export interface CallContext {
  /** Aborted when the caller has gone or its deadline has passed. */
  readonly signal: EndSignal;
  /** When our plugin began the call, by `uptimeMs`; absent for other clients. */
  readonly startedUptimeMs?: number | undefined;
  /** Until when it waits for the answer. */
  readonly untilUptimeMs?: number | undefined;
  /** Carries the id of the request on every line. */
  readonly log: Logger;
}

/** One rpc with its handler, as `RpcServer` takes it. */
export interface Rpc {
  // biome-ignore lint/suspicious/noExplicitAny: rpcs of one list differ in their messages; `rpc` checks that the two fit.
  readonly method: Method<any, any>;
  // biome-ignore lint/suspicious/noExplicitAny: as above
  readonly handle: (request: any, call: CallContext) => Promise<unknown> | AsyncIterable<unknown>;
}

/** Binds a handler to a method that answers once. */
export function rpc<Req, Res>(
  method: Method<Req, Res>,
  handle: (request: Req, call: CallContext) => Promise<Res>,
): Rpc & { readonly handle: typeof handle } {
  return { method, handle };
}

/**
 * Binds a handler to a streaming method. The next response is requested once the client has room for it, so that a slow
 * client costs no memory; when it has gone the iteration ends by `return()`.
 */
export function streamingRpc<Req, Res>(
  method: Method<Req, Res>,
  handle: (request: Req, call: CallContext) => AsyncIterable<Res>,
): Rpc & { readonly handle: typeof handle } {
  return { method, handle };
}

/** Finds the handler of each call. No reflection: the tables of `shared/proto` are the definition. */
export function openCalls(
  rpcs: readonly Rpc[],
  tracker: CallTracker,
  logger: Logger,
): (call: ServerCall) => CallListener {
  const byPath = new Map(rpcs.map((rpc) => [rpc.method.path as string, rpc]));
  return (call) => {
    const rpc = byPath.get(call.head.path);
    if (rpc !== undefined) return new HandledCall(rpc, call, tracker, logger);
    call.finish(GrpcCode.unimplemented, `Cannot serve ${call.head.path}: there is no such method`);
    return nobody;
  };
}

const nobody: CallListener = { request: async () => undefined, room: () => undefined, gone: () => undefined };

/** One call from its headers to the end of its handler. */
class HandledCall implements CallListener {
  readonly #rpc: Rpc;
  readonly #call: ServerCall;
  readonly #tracker: CallTracker;
  readonly #logger: Logger;
  readonly #gone = new AbortController();
  readonly #deadline: ReturnType<typeof setTimeout> | undefined;
  #whenRoom: (() => void) | undefined;

  constructor(rpc: Rpc, call: ServerCall, tracker: CallTracker, logger: Logger) {
    this.#rpc = rpc;
    this.#call = call;
    this.#tracker = tracker;
    this.#logger = logger;
    const { timeoutMs } = call.head;
    if (timeoutMs !== undefined) this.#deadline = setTimeout(() => this.#late(timeoutMs), timeoutMs);
  }

  async request(message: Uint8Array): Promise<void> {
    try {
      if (this.#rpc.method.responseStream) {
        await this.#tracker.track(() => this.#stream(message));
      } else {
        const response = await this.#tracker.track(async () => await this.#handle(message));
        // Sent in the same step as the end, so that both go out together.
        this.#send(response);
      }
      this.#call.finish(GrpcCode.ok);
    } catch (caught) {
      const { code, details } = rpcStatus(caught);
      this.#call.finish(code, details);
    } finally {
      clearTimeout(this.#deadline);
    }
  }

  room(): void {
    this.#whenRoom?.();
  }

  gone(): void {
    clearTimeout(this.#deadline);
    this.#gone.abort();
    this.#whenRoom?.();
  }

  #late(timeoutMs: number): void {
    const is = `there is no answer after ${timeoutMs} ms`;
    this.#call.finish(GrpcCode.deadlineExceeded, `Cannot serve ${this.#call.head.path}: ${is}`);
    this.gone();
  }

  #handle(message: Uint8Array): Promise<unknown> | AsyncIterable<unknown> {
    const { head } = this.#call;
    const context = callContext((name) => head.metadata(name), this.#gone.signal, this.#logger);
    return this.#rpc.handle(decode(this.#rpc.method, message), context);
  }

  async #stream(message: Uint8Array): Promise<void> {
    for await (const response of this.#handle(message) as AsyncIterable<unknown>) {
      if (this.#gone.signal.aborted) return;
      this.#send(response);
      if (!this.#call.hasRoom) await this.#room();
    }
  }

  #room(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#whenRoom = resolve;
    if (this.#gone.signal.aborted) resolve();
    return promise;
  }

  /** @throws {RpcError} for a response that is too long */
  #send(response: unknown): void {
    const { path, response: codec } = this.#rpc.method;
    const bytes = codec.encode(response);
    if (bytes.length > limits.messageBytes) {
      const is = `the answer is ${bytes.length} bytes long, wanted at most ${limits.messageBytes}`;
      throw new RpcError(GrpcCode.resourceExhausted, `Cannot serve ${path}: ${is}`);
    }
    this.#call.send(bytes);
  }
}

/** @throws {CniError} code 6 for bytes that are no such message */
function decode({ path, request }: Rpc["method"], message: Uint8Array): unknown {
  try {
    return request.decode(message);
  } catch (cause) {
    if (!(cause instanceof WireError)) throw cause;
    throw new CniError(CniCode.decode, `Cannot read the request of ${path}: ${cause.message}`, { cause });
  }
}

type Metadata = (name: string) => string | undefined;

export const callContext = (metadata: Metadata, signal: EndSignal, logger: Logger): CallContext =>
  contextOf(
    {
      trace: metadata("traceparent"),
      startedUptimeMs: timeOf(metadata(callTimes.startedMs)),
      untilUptimeMs: timeOf(metadata(callTimes.untilMs)),
    },
    signal,
    logger,
  );

/** The parts of a call's metadata that a handler may see. */
export interface CallMetadata {
  /** `traceparent`. */
  readonly trace?: string | undefined;
  readonly startedUptimeMs?: number | undefined;
  readonly untilUptimeMs?: number | undefined;
}

export function contextOf(
  { trace, startedUptimeMs, untilUptimeMs }: CallMetadata,
  signal: EndSignal,
  logger: Logger,
): CallContext {
  return {
    signal,
    log: logger.with(() => ({ request: randomUUID(), ...(trace === undefined ? {} : { trace }) })),
    startedUptimeMs,
    untilUptimeMs,
  };
}

/** An invalid time counts as absent. */
function timeOf(text: string | undefined): number | undefined {
  const time = Number(text ?? Number.NaN);
  return Number.isFinite(time) ? time : undefined;
}

/** gRPC's code for each of ours, for services that report failures as statuses; all others are INTERNAL. */
const statusOf = new Map<number, GrpcCode>([
  // The request itself is wrong: repeating it fails again.
  [CniCode.incompatibleVersion, GrpcCode.invalidArgument],
  [CniCode.unsupportedField, GrpcCode.invalidArgument],
  [CniCode.invalidEnvironment, GrpcCode.invalidArgument],
  [CniCode.decode, GrpcCode.invalidArgument],
  [CniCode.invalidConfig, GrpcCode.invalidArgument],
  // Nothing is free now; something must be released first.
  [CniCode.ipamFailure, GrpcCode.resourceExhausted],
  // May work later without anybody changing the request.
  [CniCode.io, GrpcCode.unavailable],
  [CniCode.tryAgainLater, GrpcCode.unavailable],
  [CniCode.notAvailable, GrpcCode.unavailable],
]);

/**
 * The gRPC status of a failed call: an `RpcError`'s own, else by the CNI code. The stack of an internal error is only
 * in the log.
 */
export function rpcStatus(caught: unknown): { code: GrpcCode; details: string } {
  if (caught instanceof RpcError) return { code: caught.grpcCode, details: caught.message };
  const error = CniError.from(caught);
  const internal = error.code === CniCode.internal;
  // A status is one line.
  const details = [error.message, ...(internal ? [] : error.details.split("\n"))]
    .filter((text) => text !== "")
    .join("; ");
  return { code: statusOf.get(error.code) ?? GrpcCode.internal, details };
}
