import { CniCode, CniError } from "../../../shared/errors.ts";
import { GrpcCode } from "../../../shared/rpc/rpc-error.ts";

/**
 * Why a call ended without an answer.
 * `unreachable`: nobody was reached, nothing has happened. `uncertain`: it may have been carried out, now or later: etcd
 * keeps what a member without a majority was asked for. `full`, `denied`, `refused`: it has not been carried out.
 */
export type EtcdTrouble = "unreachable" | "uncertain" | "full" | "denied" | "refused";

export class EtcdError extends Error {
  override readonly name = "EtcdError";
  readonly trouble: EtcdTrouble;

  /** @param message what is, as the member or grpc-js said it */
  constructor(trouble: EtcdTrouble, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.trouble = trouble;
  }

  /** Whether another member, or the same one later, may answer. */
  get passing(): boolean {
    return this.trouble === "unreachable" || this.trouble === "uncertain";
  }
}

/** The codes of calls that a member has understood and not carried out. */
const refusals: ReadonlySet<number> = new Set([
  GrpcCode.invalidArgument,
  GrpcCode.notFound,
  GrpcCode.alreadyExists,
  GrpcCode.failedPrecondition,
  GrpcCode.outOfRange,
  GrpcCode.unimplemented,
]);

/** Makes our error of grpc-js's status. One code can mean different things, which only the text tells apart. */
export function etcdError(code: number, details: string, cause?: unknown): EtcdError {
  const is = details.replace(
    /^No connection established\. Last error: (?:Error: )?(.*?)\.? Resolution note: .*$/s,
    "$1",
  );
  return new EtcdError(troubleOf(code, details), is === "" ? `status ${code}` : is, cause);
}

function troubleOf(code: number, details: string): EtcdTrouble {
  if (code === GrpcCode.permissionDenied || code === GrpcCode.unauthenticated) return "denied";
  // etcd's answer to a client without a user name, if it requires one.
  if (code === GrpcCode.invalidArgument && details.includes("user name is empty")) return "denied";
  if (code === GrpcCode.resourceExhausted) {
    if (details.includes("database space exceeded")) return "full";
    // Too many requests, or too many pings, which HTTP/2 calls by the same name: both pass.
    return details.includes("message larger") ? "refused" : "uncertain";
  }
  if (code === GrpcCode.unavailable && details.startsWith("No connection established")) return "unreachable";
  return refusals.has(code) ? "refused" : "uncertain";
}

/**
 * The one way out to callers of the registry.
 * @param action such as `register node "a"`
 * @param registry its name, and how long it was tried
 */
export function cniErrorOf(
  caught: unknown,
  action: string,
  { name, callMs }: { readonly name: string; readonly callMs: number },
): CniError {
  if (!(caught instanceof EtcdError)) return CniError.from(caught, `${action} in ${name}`);
  const cannot = `Cannot ${action} in ${name}`;
  const is = caught.message;
  const fail = (code: number, rest: string): CniError => new CniError(code, `${cannot}: ${rest}`, { cause: caught });
  switch (caught.trouble) {
    case "unreachable":
    case "uncertain":
      return fail(CniCode.tryAgainLater, `${is}, wanted an answer within ${callMs} ms${clockHint(is)}`);
    case "full":
      return fail(
        CniCode.tryAgainLater,
        `its database is full (${is}), wanted room: compact its history, defragment each member, then disarm its alarms`,
      );
    case "denied":
      // A matter of rights and certificates, not of this node's record, so it is handled like a registry that does not
      // answer.
      return fail(CniCode.tryAgainLater, `it refuses this client (${is}), wanted one that may read and write there`);
    case "refused":
      return fail(CniCode.internal, `it refuses the request (${is})`);
  }
}

/** A node whose clock is in 1970 rejects every certificate as not yet valid. */
function clockHint(is: string): string {
  return /not yet valid|expired/i.test(is) ? `; compare the certificate's dates with this node's clock` : "";
}
