import { headerOf } from "../../rpc/grpc-status.ts";
import type { Header } from "../../rpc/hpack.ts";
import type { Problem } from "../../rpc/rpc-error.ts";
import { GrpcCode } from "../../rpc/rpc-error.ts";

/** The content of a call's headers. */
export interface RequestHead {
  /** `/package.Service/Method`. */
  readonly path: string;
  /** How long the caller waits; absent where it does not say. */
  readonly timeoutMs?: number;
  /** The first value of a metadata key, by its lower-case name. */
  metadata(key: string): string | undefined;
}

export type HeadOutcome =
  | { readonly t: "call"; readonly head: RequestHead }
  /** A gRPC call that cannot be served. */
  | { readonly t: "refused"; readonly head: RequestHead; readonly problem: Problem }
  /** HTTP, but not gRPC: the status of the answer. */
  | { readonly t: "http"; readonly status: number }
  /** What RFC 9113, section 8.1.1, calls malformed. */
  | { readonly t: "malformed" };

/** Connection headers of HTTP/1, which are forbidden in a stream (section 8.2.2). */
const ofConnections = ["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"];
const pseudoHeaders = [":method", ":scheme", ":path", ":authority"];

/** Reads and checks a request's header list. `:authority` is ignored on a local socket. */
export function readHead(headers: readonly Header[]): HeadOutcome {
  if (!isWellFormed(headers)) return { t: "malformed" };
  const method = headerOf(headers, ":method");
  const path = headerOf(headers, ":path");
  if (method === undefined || path === undefined || headerOf(headers, ":scheme") === undefined)
    return { t: "malformed" };
  if (method !== "POST") return { t: "http", status: 405 };
  if (!isGrpc(headerOf(headers, "content-type") ?? "")) return { t: "http", status: 415 };
  const metadata = (key: string): string | undefined => headerOf(headers, key);
  const encoding = metadata("grpc-encoding") ?? "identity";
  if (encoding !== "identity") {
    const is = `the request's encoding is "${encoding}", which was not offered, wanted "identity"`;
    return { t: "refused", head: { path, metadata }, problem: { code: GrpcCode.unimplemented, is } };
  }
  const timeout = metadata("grpc-timeout");
  if (timeout === undefined) return { t: "call", head: { path, metadata } };
  const timeoutMs = readTimeout(timeout);
  if (timeoutMs === undefined) {
    const is = `grpc-timeout is "${timeout}", wanted up to eight digits and a unit`;
    return { t: "refused", head: { path, metadata }, problem: { code: GrpcCode.internal, is } };
  }
  return { t: "call", head: { path, metadata, timeoutMs } };
}

function isWellFormed(headers: readonly Header[]): boolean {
  let seen = 0;
  let regular = false;
  for (const [name, value] of headers) {
    if (name.startsWith(":")) {
      const bit = 1 << pseudoHeaders.indexOf(name);
      if (regular || !pseudoHeaders.includes(name) || (seen & bit) !== 0) return false;
      seen |= bit;
    } else {
      regular = true;
      if (name === "" || name !== name.toLowerCase() || ofConnections.includes(name)) return false;
      if (name === "te" && value !== "trailers") return false;
    }
  }
  return true;
}

const isGrpc = (type: string): boolean =>
  type === "application/grpc" || type.startsWith("application/grpc+") || type.startsWith("application/grpc;");

const unitsMs: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1000, m: 1, u: 1e-3, n: 1e-6 };

/** In milliseconds, at most the longest timer; `undefined` for an invalid text (grpc/grpc, doc/PROTOCOL-HTTP2.md). */
function readTimeout(text: string): number | undefined {
  const digits = text.slice(0, -1);
  const unitMs = unitsMs[text.slice(-1)];
  if (unitMs === undefined || !/^\d{1,8}$/.test(digits)) return undefined;
  return Math.min(Math.ceil(Number(digits) * unitMs), 2 ** 31 - 1);
}
