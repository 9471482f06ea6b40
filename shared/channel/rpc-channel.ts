import {
  type CallOptions,
  type Client,
  Metadata,
  makeGenericClientConstructor,
  type ServiceError,
} from "@grpc/grpc-js";
import { limits } from "../limits.ts";
import { connectFailure, isForbidden } from "../os/rights.ts";
import type { Method } from "../proto/services.ts";
import { GrpcCode, RpcError } from "../rpc/rpc-error.ts";
import { ServerCredentials } from "./server-credentials.ts";

export interface ChannelCallOptions {
  /** Until the answer; of a stream until the next response, counted while somebody waits for it. */
  readonly timeoutMs: number;
  /** Ends the call when aborted. */
  readonly signal?: AbortSignal;
}

/**
 * A lasting gRPC connection, for programs that make many calls or read streams; for a single call there is `callUnary`
 * of `shared/rpc`. It connects at the first call, and again when the connection was lost. Keeps the process alive until
 * it is disposed of.
 */
export class RpcChannel implements Disposable {
  readonly #address: string;
  readonly #client: Client;
  readonly #credentials: ServerCredentials;
  readonly #running = new Set<{ cancel(): void }>();
  #closed = false;

  /** @param address path of a unix socket, or name of a pipe, whose server must be an administrator's */
  constructor(address: string) {
    this.#address = address;
    this.#credentials = new ServerCredentials(address);
    this.#client = new (makeGenericClientConstructor({}, "Pipette"))(`unix:${address}`, this.#credentials, {
      "grpc.max_receive_message_length": limits.messageBytes,
      "grpc.max_send_message_length": limits.messageBytes,
      // Without this, channels would share a failure to connect.
      "grpc.use_local_subchannel_pool": 1,
      // A local server that restarts is back soon.
      "grpc.initial_reconnect_backoff_ms": limits.channelRetryFirstMs,
      "grpc.max_reconnect_backoff_ms": limits.channelRetryMostMs,
    });
  }

  /** @throws {RpcError} for whatever is not an answer */
  unary<Req, Res>(method: Method<Req, Res>, request: Req, { timeoutMs, signal }: ChannelCallOptions): Promise<Res> {
    const never = this.#whyNever(signal);
    if (never !== undefined) return Promise.reject(this.#error(method, never));
    const [encode, decode] = codecsOf(method);
    const options: CallOptions = { deadline: Date.now() + timeoutMs };
    // Not `Promise.withResolvers`: the exported client runs under Node 20 too.
    return new Promise((resolve, reject) => {
      const call = this.#client.makeUnaryRequest(
        method.path,
        encode,
        decode,
        request,
        new Metadata(),
        options,
        (error, answer) => {
          signal?.removeEventListener("abort", cancel);
          this.#running.delete(call);
          if (answer === undefined) reject(this.#error(method, error));
          else resolve(answer);
        },
      );
      this.#running.add(call);
      const cancel = (): void => call.cancel();
      signal?.addEventListener("abort", cancel);
    });
  }

  /**
   * Responses as they come, read ahead only as far as the transport's window; leaving the loop ends the call.
   * @throws {RpcError} in the loop
   */
  async *stream<Req, Res>(
    method: Method<Req, Res>,
    request: Req,
    { timeoutMs, signal }: ChannelCallOptions,
  ): AsyncGenerator<Res, void> {
    const never = this.#whyNever(signal);
    if (never !== undefined) throw this.#error(method, never);
    const [encode, decode] = codecsOf(method);
    const call = this.#client.makeServerStreamRequest(method.path, encode, decode, request);
    // After the loop was left an error without a listener would end the process.
    call.on("error", () => undefined);
    this.#running.add(call);
    let late = false;
    const end = (): void => {
      late = signal?.aborted !== true;
      call.cancel();
    };
    signal?.addEventListener("abort", end);
    try {
      const responses = call[Symbol.asyncIterator]();
      for (;;) {
        const timer = setTimeout(end, timeoutMs);
        const { done, value } = await responses.next().finally(() => clearTimeout(timer));
        if (done === true) return;
        yield value as Res;
      }
    } catch (caught) {
      const silence = { code: GrpcCode.deadlineExceeded, details: `nothing came for ${timeoutMs} ms` };
      throw this.#error(method, late ? silence : caught);
    } finally {
      signal?.removeEventListener("abort", end);
      this.#running.delete(call);
      call.cancel();
    }
  }

  /** Ends the calls that run; there are no others afterwards. */
  [Symbol.dispose](): void {
    this.#closed = true;
    for (const call of this.#running) call.cancel();
    this.#client.close();
  }

  #whyNever(signal: AbortSignal | undefined): Pick<ServiceError, "code" | "details"> | undefined {
    const code = GrpcCode.cancelled;
    if (this.#closed) return { code, details: "the channel is closed" };
    return signal?.aborted === true ? { code, details: "it was cancelled before it began" } : undefined;
  }

  #error(method: Method<unknown, unknown>, caught: unknown): unknown {
    const said = caught as Partial<ServiceError>;
    if (said.code === undefined || said.details === undefined) return caught;
    const { code, details } = statusOf({ code: said.code, details: said.details });
    const unreachable = code === GrpcCode.unavailable && details.startsWith("No connection established");
    const { refused } = this.#credentials;
    if (unreachable && refused !== undefined) {
      const message = `Cannot call ${method.path} at "${this.#address}": ${refused}`;
      return new RpcError(GrpcCode.unauthenticated, message, { unreachable, cause: caught });
    }
    if (unreachable && isForbidden(this.#address)) {
      const message = `Cannot call ${method.path} at "${this.#address}": ${connectFailure("EACCES", "")}`;
      return new RpcError(GrpcCode.permissionDenied, message, { unreachable, cause: caught });
    }
    // The server's text is a whole sentence; grpc-js's own is not.
    const is = unreachable ? "nobody listens" : details;
    const message = details.startsWith("Cannot ") ? details : `Cannot call ${method.path} at "${this.#address}": ${is}`;
    return new RpcError(code as GrpcCode, message, { unreachable, cause: caught });
  }
}

/**
 * grpc-js reports a connection that is lost during a call as UNAVAILABLE, except with EPIPE, as pipes of Windows end:
 * that it reports as INTERNAL, which callers do not retry.
 */
export function statusOf({
  code,
  details,
}: Pick<ServiceError, "code" | "details">): Pick<ServiceError, "code" | "details"> {
  const lost = /^Received RST_STREAM with code 2 triggered by internal client error: (EPIPE.*)$/s.exec(details);
  if (code !== GrpcCode.internal || lost === null) return { code, details };
  return { code: GrpcCode.unavailable, details: `the connection was lost (${lost[1]})` };
}

function codecsOf<Req, Res>({ request, response }: Method<Req, Res>): [(value: Req) => Buffer, (bytes: Buffer) => Res] {
  return [(value) => Buffer.from(request.encode(value)), (bytes) => response.decode(bytes)];
}
