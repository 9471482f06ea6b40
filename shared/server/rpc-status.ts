import { CniCode, CniError } from "../errors.ts";
import { GrpcCode, RpcError } from "../rpc/rpc-error.ts";

/** gRPC's code for each of ours, for the services whose failures are statuses; whatever stands not here is INTERNAL. */
const statusOf = new Map<number, GrpcCode>([
  // The request itself will not do: the same again fails again.
  [CniCode.incompatibleVersion, GrpcCode.invalidArgument],
  [CniCode.unsupportedField, GrpcCode.invalidArgument],
  [CniCode.invalidEnvironment, GrpcCode.invalidArgument],
  [CniCode.decode, GrpcCode.invalidArgument],
  [CniCode.invalidConfig, GrpcCode.invalidArgument],
  // Nothing to give now; somebody must give something back first.
  [CniCode.ipamFailure, GrpcCode.resourceExhausted],
  // May work later without anybody changing the request.
  [CniCode.io, GrpcCode.unavailable],
  [CniCode.tryAgainLater, GrpcCode.unavailable],
  [CniCode.notAvailable, GrpcCode.unavailable],
]);

/**
 * The gRPC status of a failed call: of an `RpcError` its own, else by the CNI code. A fault of ours keeps its stack
 * out of the answer: the log has it.
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
