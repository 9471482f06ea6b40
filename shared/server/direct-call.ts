import { withTimeout } from "../async/with-timeout.ts";
import type { Logger } from "../log.ts";
import type { Method } from "../proto/services.ts";
import { GrpcCode, RpcError } from "../rpc/rpc-error.ts";
import { callContext, type Rpc, rpcStatus } from "./handlers.ts";

export interface DirectCallOptions {
  /** The deadline of the answer. */
  readonly timeoutMs: number;
  readonly metadata: Readonly<Record<string, string>>;
  /** Aborted when the caller has gone. */
  readonly signal: AbortSignal;
  readonly logger: Logger;
  /** `Cannot ask the agent at …`, the beginning of the error of a call without an answer. */
  readonly what: string;
}

/**
 * Calls a handler of this process directly, with the same deadline and the same errors as for a client on the socket.
 * @throws {RpcError}
 */
export async function callDirectly<Req, Res>(
  rpcs: readonly Rpc[],
  method: Method<Req, Res>,
  request: Req,
  { timeoutMs, metadata, signal, logger, what }: DirectCallOptions,
): Promise<Res> {
  const found = rpcs.find((rpc) => rpc.method.path === method.path);
  if (found === undefined)
    throw new RpcError(
      GrpcCode.unimplemented,
      `Cannot serve ${method.path}: there is no such method, wanted one of ours`,
    );
  const late = new AbortController();
  const context = callContext((name) => metadata[name], AbortSignal.any([signal, late.signal]), logger);
  const ended = (async () => (await found.handle(request, context)) as Res)();
  try {
    return await withTimeout(ended, Math.max(1, timeoutMs), () => {
      late.abort();
      const is = `there is no answer after ${Math.round(timeoutMs)} ms, wanted one by then`;
      throw new RpcError(GrpcCode.deadlineExceeded, `${what}: ${is}`);
    });
  } catch (caught) {
    const { code, details } = rpcStatus(caught);
    throw caught instanceof RpcError ? caught : new RpcError(code, details);
  }
}
