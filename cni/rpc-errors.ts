import { CniCode, CniError } from "../shared/errors.ts";
import { GrpcCode, type RpcError } from "../shared/rpc/rpc-error.ts";

/** What the reference system's plugin makes of a call that got no answer, so that runtimes see the same from both. */
export function fromRpcError(error: RpcError, socket: string): CniError {
  // The text may be the server's own, which does not say who speaks.
  const details = `gRPC status ${error.grpcCode} of the agent at "${socket}"`;
  return new CniError(codeOf(error), error.message, { cause: error, details });
}

function codeOf(error: RpcError): CniCode {
  // Nobody there, or nobody in time: the agent restarts, and the next attempt may find it.
  if (error.unreachable || error.grpcCode === GrpcCode.unavailable || error.grpcCode === GrpcCode.deadlineExceeded)
    return CniCode.tryAgainLater;
  // A server that does not know the method is of another make or age.
  if (error.grpcCode === GrpcCode.unimplemented) return CniCode.incompatibleApi;
  return CniCode.unknownRpc;
}
