import { randomUUID } from "node:crypto";
import type {
  handleServerStreamingCall,
  handleUnaryCall,
  ServerUnaryCall,
  ServerWritableStream,
  ServiceDefinition,
  UntypedServiceImplementation,
} from "@grpc/grpc-js";
import { CniCode, CniError } from "../errors.ts";
import type { Logger } from "../log.ts";
import { callTimes, type Method } from "../proto/services.ts";
import { WireError } from "../proto/wire.ts";
import type { CallTracker } from "./call-tracker.ts";
import { rpcStatus } from "./rpc-status.ts";

/** What a handler knows of the call around its request. */
export interface CallContext {
  /** Aborted when the caller has gone or its deadline has passed. */
  readonly signal: AbortSignal;
  /** When our plugin began the call, in milliseconds since 1970; another make's client does not say. */
  readonly startedAtMs?: number;
  /** Until when it waits for the answer. */
  readonly untilMs?: number;
  /** Carries the id of the request on every line. */
  readonly log: Logger;
}

/** One rpc with its handler, as `RpcServer` takes it. */
export interface Rpc {
  // biome-ignore lint/suspicious/noExplicitAny: grpc-js types its handlers so; `rpc` checks that the two fit.
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
 * Binds a handler to a streaming method. The next response is asked for once the caller has room for it, so that a
 * slow one costs no memory; when it has gone the iteration ends by `return()`.
 */
export function streamingRpc<Req, Res>(
  method: Method<Req, Res>,
  handle: (request: Req, call: CallContext) => AsyncIterable<Res>,
): Rpc & { readonly handle: typeof handle } {
  return { method, handle };
}

/** grpc-js's form of a set of rpcs. No reflection: the tables of `shared/proto` are the definition. */
export function toService(
  rpcs: readonly Rpc[],
  tracker: CallTracker,
  logger: Logger,
): { definition: ServiceDefinition; implementation: UntypedServiceImplementation } {
  const definition: Record<string, ServiceDefinition[string]> = {};
  const implementation: UntypedServiceImplementation = {};
  for (const { method, handle } of rpcs) {
    const { path, request, response, responseStream } = method;
    const name = path.slice(path.lastIndexOf("/") + 1);
    definition[name] = {
      path,
      requestStream: false,
      responseStream,
      requestSerialize: (value) => Buffer.from(request.encode(value)),
      // Decoded where its failure becomes a status of ours: grpc-js would call it its own fault.
      requestDeserialize: (bytes) => bytes,
      responseSerialize: (value) => Buffer.from(response.encode(value)),
      responseDeserialize: (bytes) => response.decode(bytes),
    };
    implementation[name] = responseStream
      ? streaming({ method, handle }, tracker, logger)
      : unary({ method, handle }, tracker, logger);
  }
  return { definition, implementation };
}

function unary(rpc: Rpc, tracker: CallTracker, logger: Logger): handleUnaryCall<unknown, unknown> {
  return (call, callback) => {
    tracker
      .track(async () => await rpc.handle(requestOf(rpc, call), contextOf(call, logger)))
      .then(
        (response) => callback(null, response),
        (caught: unknown) => callback(rpcStatus(caught)),
      );
  };
}

function streaming(rpc: Rpc, tracker: CallTracker, logger: Logger): handleServerStreamingCall<unknown, unknown> {
  return (call) => {
    tracker
      .track(async () => {
        const context = contextOf(call, logger);
        const responses = rpc.handle(requestOf(rpc, call), context) as AsyncIterable<unknown>;
        for await (const response of responses) {
          if (call.cancelled) return;
          if (!call.write(response)) await drained(call, context.signal);
        }
      })
      .then(
        () => call.end(),
        (caught: unknown) => call.emit("error", rpcStatus(caught)),
      );
  };
}

/** What unary and streaming calls have in common. */
type AnyCall = Pick<ServerUnaryCall<unknown, unknown>, "request" | "metadata" | "cancelled"> & {
  on(event: "cancelled", listener: () => void): unknown;
};

/** @throws {CniError} code 6 for bytes that are no such message */
function requestOf({ method }: Rpc, call: AnyCall): unknown {
  try {
    return method.request.decode(call.request as Uint8Array);
  } catch (cause) {
    if (!(cause instanceof WireError)) throw cause;
    throw new CniError(CniCode.decode, `Cannot read the request of ${method.path}: ${cause.message}`, { cause });
  }
}

function contextOf(call: AnyCall, logger: Logger): CallContext {
  const gone = new AbortController();
  call.on("cancelled", () => gone.abort());
  if (call.cancelled) gone.abort();
  const [trace] = call.metadata.get("traceparent");
  const base = { request: randomUUID(), ...(trace === undefined ? {} : { trace: String(trace) }) };
  const startedAtMs = timeOf(call, callTimes.startedMs);
  const untilMs = timeOf(call, callTimes.untilMs);
  return {
    signal: gone.signal,
    log: logger.with(base),
    ...(startedAtMs === undefined ? {} : { startedAtMs }),
    ...(untilMs === undefined ? {} : { untilMs }),
  };
}

/** A time that is none counts as not given. */
function timeOf(call: AnyCall, name: string): number | undefined {
  const [text] = call.metadata.get(name);
  const time = Number(text ?? Number.NaN);
  return Number.isFinite(time) ? time : undefined;
}

/** Waits until there is room for more, or the caller has gone. */
function drained(call: ServerWritableStream<unknown, unknown>, gone: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const settle = (): void => {
    call.off("drain", settle);
    gone.removeEventListener("abort", settle);
    resolve();
  };
  call.on("drain", settle);
  gone.addEventListener("abort", settle);
  if (gone.aborted) settle();
  return promise;
}
