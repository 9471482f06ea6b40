import { afterTurn } from "../async/after-turn.ts";
import { type EndSignal, LateSignal } from "../async/late-signal.ts";
import type { Logger } from "../log.ts";
import type { Method } from "../proto/services.ts";
import { GrpcCode, noAnswer, RpcError } from "../rpc/rpc-error.ts";
import { type CallMetadata, contextOf, type Rpc, rpcStatus } from "./handlers.ts";

export interface DirectCallOptions extends CallMetadata {
  /** The deadline of the answer. */
  readonly timeoutMs: number;
  /** Aborted when the caller has gone. */
  readonly signal: EndSignal;
  readonly logger: Logger;
  /** `Cannot ask the agent at …`, the beginning of the error of a call without an answer. */
  what(): string;
}

/**
 * Calls a handler of this process directly, with the same deadline and the same errors as for a client on the socket.
 * @throws {RpcError}
 */
export async function callDirectly<Req, Res>(
  rpcs: readonly Rpc[],
  method: Method<Req, Res>,
  request: Req,
  options: DirectCallOptions,
): Promise<Res> {
  const { timeoutMs, signal, logger } = options;
  const found = rpcs.find((rpc) => rpc.method.path === method.path);
  if (found === undefined)
    throw new RpcError(GrpcCode.unimplemented, `Cannot serve ${method.path}: there is no such method`);
  const untilMs = performance.now() + timeoutMs;
  const late = new LateSignal(signal);
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isOver = false;
  try {
    return await new Promise((resolve, reject) => {
      // That of a method that answers once, as `Method` has it.
      const answer = found.handle(request, contextOf(options, late, logger)) as Promise<Res>;
      answer.then(resolve, reject);
      // Most calls have ended by then, and need no timer.
      afterTurn(() => {
        if (isOver) return;
        timer = setTimeout(
          () => {
            late.abort();
            reject(noAnswer(options.what(), Math.round(timeoutMs)));
          },
          Math.max(1, untilMs - performance.now()),
        );
      });
    });
  } catch (caught) {
    if (caught instanceof RpcError) throw caught;
    const { code, details } = rpcStatus(caught);
    throw new RpcError(code, details);
  } finally {
    isOver = true;
    clearTimeout(timer);
  }
}
