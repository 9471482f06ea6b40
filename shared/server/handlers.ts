import { randomUUID } from "node:crypto";
import type {
  handleServerStreamingCall,
  handleUnaryCall,
  ServerUnaryCall,
  ServerWritableStream,
  ServiceDefinition,
  UntypedServiceImplementation,
} from "@grpc/grpc-js";
import type { Logger } from "../log.ts";
import type { Method } from "../proto/services.ts";
import type { CallTracker } from "./call-tracker.ts";
import { rpcStatus } from "./rpc-status.ts";

/** What a handler knows of the call around its request. */
export interface CallContext {
  /** Aborted when the caller has gone or its deadline has passed. */
  readonly signal: AbortSignal;
  /** Carries the id of the request on every line. */
  readonly log: Logger;
}

export type Handler<Req, Res> = (request: Req, call: CallContext) => Promise<Res>;

/** One rpc with its handler, as `addRpcs` takes it. */
export interface Rpc {
  // biome-ignore lint/suspicious/noExplicitAny: grpc-js types its handlers so; `rpc` checks that the two fit.
  readonly method: Method<any, any>;
  // biome-ignore lint/suspicious/noExplicitAny: as above
  readonly handle: Handler<any, unknown>;
}

/** Binds a handler to a method; a streaming method's handler answers all of its responses at once. */
export function rpc<Req, Res>(method: Method<Req, Res>, handle: Handler<Req, Res | readonly Res[]>): Rpc {
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
      requestDeserialize: (bytes) => request.decode(bytes),
      responseSerialize: (value) => Buffer.from(response.encode(value)),
      responseDeserialize: (bytes) => response.decode(bytes),
    };
    implementation[name] = responseStream ? streaming(handle, tracker, logger) : unary(handle, tracker, logger);
  }
  return { definition, implementation };
}

function unary(handle: Rpc["handle"], tracker: CallTracker, logger: Logger): handleUnaryCall<unknown, unknown> {
  return (call, callback) => {
    tracker
      .track(() => serve(handle, call, logger))
      .then(
        (response) => callback(null, response),
        (caught: unknown) => callback(rpcStatus(caught)),
      );
  };
}

function streaming(
  handle: Rpc["handle"],
  tracker: CallTracker,
  logger: Logger,
): handleServerStreamingCall<unknown, unknown> {
  return (call) => {
    tracker
      .track(async () => {
        const responses = (await serve(handle, call, logger)) as readonly unknown[];
        for (const response of responses) {
          if (call.cancelled) return;
          if (!call.write(response)) await drained(call);
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

async function serve(handle: Rpc["handle"], call: AnyCall, logger: Logger): Promise<unknown> {
  const gone = new AbortController();
  call.on("cancelled", () => gone.abort());
  if (call.cancelled) gone.abort();
  const [trace] = call.metadata.get("traceparent");
  const base = { request: randomUUID(), ...(trace === undefined ? {} : { trace: String(trace) }) };
  return await handle(call.request, { signal: gone.signal, log: logger.with(base) });
}

function drained(call: ServerWritableStream<unknown, unknown>): Promise<void> {
  return new Promise((resolve) => {
    call.once("drain", resolve);
    call.once("cancelled", resolve);
  });
}
