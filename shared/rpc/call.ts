import { limits } from "../limits.ts";
import { isWindows } from "../os/platform.ts";
import type { Method } from "../proto/services.ts";
import { reasonOf } from "../reason.ts";
import { exchangeAlone } from "./exchange-alone.linux.ts";
import { H2Call } from "./h2-client.ts";
import type { Header } from "./hpack.ts";
import { GrpcCode, noAnswer, RpcError } from "./rpc-error.ts";

export interface CallOptions {
  /** From the call until the answer, connecting included. The server is told. */
  readonly timeoutMs: number;
  /**
   * Sent along as gRPC metadata. A pair that a header cannot carry (a name other than lower-case letters, digits, "_",
   * "." and "-", a value other than printable ASCII) is left out, because metadata must not make a call fail.
   */
  readonly metadata?: Readonly<Record<string, string>>;
  /** The process has nothing else to do and may block until the answer has come; on Windows it always does. */
  readonly alone?: boolean;
}

/**
 * One unary gRPC call on a connection of its own.
 * @param address path of a unix socket, or name of a Windows pipe
 * @throws {RpcError} for whatever is not an answer; `unreachable` if no server has received the call
 */
export async function callUnary<Req, Res>(
  address: string,
  method: Method<Req, Res>,
  request: Req,
  options: CallOptions,
): Promise<Res> {
  const what = `Cannot ask the agent at "${address}"`;
  const call = new H2Call(requestHeaders(method.path, options), encodeRequest(method, request, what), what);
  const message = await exchanged(address, call, options, what);
  if (message !== undefined) return decodeResponse(method, message, what);
  throw noAnswer(what, options.timeoutMs);
}

async function exchanged(
  address: string,
  call: H2Call,
  { alone, timeoutMs }: CallOptions,
  what: string,
): Promise<Uint8Array | undefined> {
  if (isWindows) return (await import("./exchange-pipe.windows.ts")).exchangeByPipe(address, call, timeoutMs, what);
  const message = alone ? exchangeAlone(address, call, timeoutMs, what) : "unable";
  if (message !== "unable") return message;
  return (await import("./exchange.ts")).exchange(address, call, timeoutMs, what);
}

function encodeRequest<Req, Res>(method: Method<Req, Res>, request: Req, what: string): Uint8Array {
  const bytes = method.request.encode(request);
  if (bytes.length <= limits.messageBytes) return bytes;
  const is = `the request is ${bytes.length} bytes long, wanted at most ${limits.messageBytes}`;
  throw new RpcError(GrpcCode.resourceExhausted, `${what}: ${is}`, { unreachable: true });
}

function decodeResponse<Req, Res>(method: Method<Req, Res>, message: Uint8Array, what: string): Res {
  try {
    return method.response.decode(message);
  } catch (cause) {
    const is = reasonOf(cause);
    throw new RpcError(GrpcCode.internal, `${what}: the answer cannot be read: ${is}`, { cause });
  }
}

/** `grpc-timeout` has at most 8 digits. */
const maxTimeoutMs = 99_999_999;

function requestHeaders(path: string, options: CallOptions): Header[] {
  const timeoutMs = Math.max(1, Math.min(maxTimeoutMs, Math.ceil(options.timeoutMs)));
  const headers: Header[] = [
    [":method", "POST"],
    [":scheme", "http"],
    [":path", path],
    // Of no meaning on a local socket; servers with nghttp2's rules want a host name.
    [":authority", "localhost"],
    ["te", "trailers"],
    ["content-type", "application/grpc"],
    ["user-agent", "pipette"],
    ["grpc-timeout", `${timeoutMs}m`],
  ];
  for (const [name, value] of Object.entries(options.metadata ?? {}))
    if (isName(name) && isPrintable(value)) headers.push([name, value]);
  return headers;
}

function isName(text: string): boolean {
  for (let i = 0; i < text.length; i++)
    if (!"abcdefghijklmnopqrstuvwxyz0123456789-_.".includes(text.charAt(i))) return false;
  return text !== "" && !text.startsWith("grpc-");
}

function isPrintable(text: string): boolean {
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) < 32 || text.charCodeAt(i) > 126) return false;
  return true;
}
