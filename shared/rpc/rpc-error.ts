import { maxErrorChars } from "../errors.ts";
import { brief, printable } from "../printable.ts";

/** gRPC's status codes (grpc/grpc, doc/statuscodes.md): 17 and the numbers above it are not assigned. */
export const GrpcCode = {
  ok: 0,
  cancelled: 1,
  unknown: 2,
  invalidArgument: 3,
  deadlineExceeded: 4,
  notFound: 5,
  alreadyExists: 6,
  permissionDenied: 7,
  resourceExhausted: 8,
  failedPrecondition: 9,
  aborted: 10,
  outOfRange: 11,
  unimplemented: 12,
  internal: 13,
  unavailable: 14,
  dataLoss: 15,
  unauthenticated: 16,
} as const;

export type GrpcCode = (typeof GrpcCode)[keyof typeof GrpcCode];

export interface RpcErrorOptions {
  readonly unreachable?: boolean;
  readonly absent?: boolean;
  readonly cause?: unknown;
}

/**
 * A call that ended without an answer: by the server's status, or because of the connection. The message may come from
 * the server and is escaped for terminals.
 */
export class RpcError extends Error {
  override readonly name = "RpcError";
  readonly grpcCode: GrpcCode;
  /** `true`: certainly no server has received the call. `false`: unknown. */
  readonly unreachable: boolean;
  /** `true`: there is no socket or pipe, or nobody listens; a server that is starting may be there soon. */
  readonly absent: boolean;

  constructor(grpcCode: GrpcCode, message: string, options: RpcErrorOptions = {}) {
    const cause = options.cause === undefined ? undefined : { cause: options.cause };
    super(brief(printable(message), maxErrorChars), cause);
    this.grpcCode = grpcCode;
    this.absent = options.absent ?? false;
    this.unreachable = options.unreachable ?? this.absent;
  }
}

/** Nothing came before the caller's deadline. @param what `Cannot ask the agent at …` */
export const noAnswer = (what: string, timeoutMs: number): RpcError =>
  new RpcError(GrpcCode.deadlineExceeded, `${what}: there is no answer after ${timeoutMs} ms`);

/** Why a call ended, from the part that noticed it: the middle of an error message, and its code. */
export interface Problem {
  readonly code: GrpcCode;
  /** `<what is>, wanted <what should be>`. */
  readonly is: string;
}

/** The server sent what HTTP/2 forbids. */
export const broken = (found: string): Problem => ({
  code: GrpcCode.internal,
  is: `the server broke HTTP/2 with ${found}`,
});
