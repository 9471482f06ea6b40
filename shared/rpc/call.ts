import { limits } from "../limits.ts";
import type { Method } from "../proto/services.ts";
import { H2Call } from "./h2-client.ts";
import type { Header } from "./hpack.ts";
import { isListening } from "./listening.ts";
import { GrpcCode, RpcError } from "./rpc-error.ts";

export interface CallOptions {
  /** From the call until the answer, connecting included. The server is told. */
  readonly timeoutMs: number;
  /**
   * Sent along as gRPC metadata. A pair that a header cannot carry (a name other than lower-case letters, digits,
   * "_", "." and "-", a value other than printable ASCII) is left out: it accompanies a call, it must not stop it.
   */
  readonly metadata?: Readonly<Record<string, string>>;
}

/**
 * One unary gRPC call on a connection of its own.
 * @param address path of a unix socket, or name of a Windows pipe
 * @throws {RpcError} for whatever is not an answer; `unreachable` where no server has seen the call
 */
export async function callUnary<Req, Res>(
  address: string,
  method: Method<Req, Res>,
  request: Req,
  options: CallOptions,
): Promise<Res> {
  const what = `Cannot call ${method.path} at "${address}"`;
  const deadline = startDeadline(options.timeoutMs);
  try {
    const bytes = encodeRequest(method, request, what);
    const call = new H2Call(requestHeaders(method.path, options), bytes, what);
    const socket = await connect(address, call, deadline, what);
    const message = await Promise.race([socket.answer, deadline.passed]).finally(socket.close);
    if (message === undefined)
      throw new RpcError(
        GrpcCode.deadlineExceeded,
        `${what}: there is no answer after ${options.timeoutMs} ms, wanted one by then`,
      );
    return decodeResponse(method, message, what);
  } finally {
    deadline.stop();
  }
}

interface Deadline {
  /** Resolves with nothing once the time is over. */
  readonly passed: Promise<undefined>;
  readonly timeoutMs: number;
  isOver(): boolean;
  stop(): void;
}

function startDeadline(timeoutMs: number): Deadline {
  let over = false;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const passed = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => {
      over = true;
      resolve(undefined);
    }, timeoutMs);
  });
  return { passed, timeoutMs, isOver: () => over, stop: () => clearTimeout(timer) };
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
    const is = cause instanceof Error ? cause.message : String(cause);
    throw new RpcError(GrpcCode.internal, `${what}: the answer cannot be read: ${is}`, { cause });
  }
}

/** The most that `grpc-timeout` can say has 8 digits. */
const mostTimeoutMs = 99_999_999;

function requestHeaders(path: string, options: CallOptions): Header[] {
  const timeoutMs = Math.max(1, Math.min(mostTimeoutMs, Math.ceil(options.timeoutMs)));
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

interface OpenCall {
  /** The response message, or an `RpcError`. */
  readonly answer: Promise<Uint8Array>;
  close(): void;
}

/** Connects, again and again where the listener's queue is full, and begins the call. */
async function connect(address: string, call: H2Call, deadline: Deadline, what: string): Promise<OpenCall> {
  for (let pauseMs: number = limits.connectRetryFirstMs; ; pauseMs = Math.min(2 * pauseMs, limits.connectRetryMostMs)) {
    try {
      const opening = open(address, call);
      const opened = await Promise.race([opening, deadline.passed]);
      if (opened !== undefined) return opened;
      // A connection that comes to stand after all has no one to talk to.
      opening.then((late) => late.close()).catch(() => undefined);
    } catch (caught) {
      await refuse(caught, address, what);
    }
    await Promise.race([sleep(pauseMs), deadline.passed]);
    if (deadline.isOver()) {
      const is = `its listener took no connection within ${deadline.timeoutMs} ms, wanted one by then`;
      throw new RpcError(GrpcCode.deadlineExceeded, `${what}: ${is}`, { unreachable: true });
    }
  }
}

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Throws what the failure to connect means, and returns where another attempt may do better. */
async function refuse(caught: unknown, address: string, what: string): Promise<void> {
  const code = caught instanceof Error && "code" in caught ? String(caught.code) : String(caught);
  const crowded = code === "ECONNREFUSED" || code === "EAGAIN" || code === "EBUSY";
  if (crowded && (await isListening(address))) return;
  const nobody = crowded || code === "ENOENT";
  const is = nobody ? `nobody listens (${code}), wanted an agent` : `connecting fails with ${code}, wanted an agent`;
  throw new RpcError(GrpcCode.unavailable, `${what}: ${is}`, { unreachable: true, cause: caught });
}

/** Opens the connection and lets the call run over it. */
async function open(address: string, call: H2Call): Promise<OpenCall> {
  const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>();
  // The caller may be gone by the time it fails.
  promise.catch(() => undefined);
  let unsent: Uint8Array = new Uint8Array(0);
  const flush = (socket: Bun.Socket): void => {
    while (unsent.length > 0) {
      const written = socket.write(unsent);
      if (written <= 0) return;
      unsent = unsent.subarray(written);
      if (unsent.length === 0) unsent = call.take();
    }
  };
  const step = (socket: Bun.Socket): void => {
    if (call.outcome.t === "answered") resolve(call.outcome.message);
    else if (call.outcome.t === "failed") reject(call.outcome.error);
    else {
      if (unsent.length === 0) unsent = call.take();
      flush(socket);
    }
  };
  const socket = await Bun.connect({
    unix: address,
    socket: {
      binaryType: "uint8array",
      open: step,
      drain: step,
      data(socket, chunk) {
        call.receive(chunk);
        step(socket);
      },
      end(socket) {
        call.ended();
        step(socket);
      },
      close(socket) {
        call.ended();
        step(socket);
      },
      error(socket, error) {
        call.ended(`the connection broke (${error.message})`);
        step(socket);
      },
    },
  });
  return { answer: promise, close: () => socket.terminate() };
}
