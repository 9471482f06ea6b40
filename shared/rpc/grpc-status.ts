import type { Header } from "./hpack.ts";
import type { Problem } from "./rpc-error.ts";
import { GrpcCode, RpcError } from "./rpc-error.ts";

// The tables below are only for failed calls, so they are created on first use: a plugin starts for every call.

const assignedCodes = (): readonly GrpcCode[] => Object.values(GrpcCode);

/** The value of the first header of that name. */
export function headerOf(headers: readonly Header[], name: string): string | undefined {
  for (const header of headers) if (header[0] === name) return header[1];
  return undefined;
}

/**
 * The result in a stream's trailers: nothing for success, the server's error, or that there is no status (grpc/grpc,
 * doc/PROTOCOL-HTTP2.md, "Responses").
 */
export function errorOfTrailers(headers: readonly Header[]): RpcError | Problem | undefined {
  const status = headerOf(headers, "grpc-status");
  if (status === undefined) return errorOfHttp(headers);
  if (status === "0") return undefined;
  const code = assignedCodes().find((assigned) => String(assigned) === status) ?? GrpcCode.unknown;
  const message = percentDecode(headerOf(headers, "grpc-message") ?? "");
  if (message !== "") return new RpcError(code, message);
  return { code, is: `the server answered with status "${status}", wanted 0` };
}

/** grpc/grpc, doc/http-grpc-status-mapping.md: for an HTTP server that does not speak gRPC. */
const codesOfHttp = (): Readonly<Record<string, GrpcCode>> => ({
  "400": GrpcCode.internal,
  "401": GrpcCode.unauthenticated,
  "403": GrpcCode.permissionDenied,
  "404": GrpcCode.unimplemented,
  "429": GrpcCode.unavailable,
  "502": GrpcCode.unavailable,
  "503": GrpcCode.unavailable,
  "504": GrpcCode.unavailable,
});

/** The error for headers without a gRPC status, which come from another kind of server. */
export function errorOfHttp(headers: readonly Header[]): Problem {
  const status = headerOf(headers, ":status");
  const type = headerOf(headers, "content-type") ?? "";
  const is = status === undefined ? "no status" : `HTTP status ${status}, content type "${type}" and no gRPC status`;
  return {
    code: codesOfHttp()[status ?? ""] ?? GrpcCode.unknown,
    is: `the server answered with ${is}, wanted a gRPC answer`,
  };
}

/** RST_STREAM and GOAWAY codes (RFC 9113, section 7) as gRPC maps them; all others are unknown. */
const resets = (): readonly (readonly [name: string, code: GrpcCode])[] => [
  ["NO_ERROR", GrpcCode.internal],
  ["PROTOCOL_ERROR", GrpcCode.internal],
  ["INTERNAL_ERROR", GrpcCode.internal],
  ["FLOW_CONTROL_ERROR", GrpcCode.internal],
  ["SETTINGS_TIMEOUT", GrpcCode.internal],
  ["STREAM_CLOSED", GrpcCode.unknown],
  ["FRAME_SIZE_ERROR", GrpcCode.internal],
  ["REFUSED_STREAM", GrpcCode.unavailable],
  ["CANCEL", GrpcCode.cancelled],
  ["COMPRESSION_ERROR", GrpcCode.internal],
  ["CONNECT_ERROR", GrpcCode.internal],
  ["ENHANCE_YOUR_CALM", GrpcCode.resourceExhausted],
  ["INADEQUATE_SECURITY", GrpcCode.permissionDenied],
];

/** The name and the gRPC code of an HTTP/2 error code. */
export function resetOf(code: number): readonly [name: string, code: GrpcCode] {
  return resets()[code] ?? [`error ${code}`, GrpcCode.unknown];
}

/** `grpc-message`: percent-encoded UTF-8. Invalid escapes stay as they are, so that no message is lost. */
export function percentDecode(text: string): string {
  if (!text.includes("%") && isAscii(text)) return text;
  const bytes = new Uint8Array(text.length);
  let length = 0;
  for (let i = 0; i < text.length; i++) {
    const high = text.charCodeAt(i) === 37 ? hexDigit(text.charCodeAt(i + 1)) : -1;
    const low = high < 0 ? -1 : hexDigit(text.charCodeAt(i + 2));
    if (low < 0) {
      bytes[length++] = text.charCodeAt(i);
    } else {
      bytes[length++] = high * 16 + low;
      i += 2;
    }
  }
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes.subarray(0, length));
}

function isAscii(text: string): boolean {
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 126) return false;
  return true;
}

/** -1 for any other character, and for the end of a text (NaN). */
function hexDigit(code: number): number {
  if (code >= 48 && code <= 57) return code - 48;
  const lower = code | 32;
  return lower >= 97 && lower <= 102 ? lower - 87 : -1;
}
