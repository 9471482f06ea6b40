import { limits } from "../limits.ts";
import { connectFailure } from "../os/rights.ts";
import { reasonOf } from "../reason.ts";
import type { H2Call } from "./h2-client.ts";
import { isListening } from "./listening.ts";
import { GrpcCode, RpcError } from "./rpc-error.ts";

/**
 * Runs a call over a connection of its own, by Bun's sockets, without blocking the process.
 * @param address path of a unix socket
 * @param what `Cannot ask the agent at …`, the beginning of every error
 * @returns the response message; nothing where there was none in time
 * @throws {RpcError} for any other end of the call
 */
export async function exchange(
  address: string,
  call: H2Call,
  timeoutMs: number,
  what: string,
): Promise<Uint8Array | undefined> {
  const deadline = startDeadline(timeoutMs);
  try {
    const socket = await connect(address, call, deadline, what);
    return await Promise.race([socket.answer, deadline.passed]).finally(socket.close);
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

interface OpenCall {
  /** The response message, or an `RpcError`. */
  readonly answer: Promise<Uint8Array>;
  close(): void;
}

/** Connects, retrying while the listener's queue is full, and begins the call. */
async function connect(address: string, call: H2Call, deadline: Deadline, what: string): Promise<OpenCall> {
  for (let pauseMs: number = limits.connectRetryFirstMs; ; pauseMs = Math.min(2 * pauseMs, limits.connectRetryMostMs)) {
    try {
      const opening = open(address, call);
      const opened = await Promise.race([opening, deadline.passed]);
      if (opened !== undefined) return opened;
      // A connection that is made after the deadline is closed.
      opening.then((late) => late.close()).catch(() => undefined);
    } catch (caught) {
      await refuse(caught, address, what);
    }
    await Promise.race([sleep(pauseMs), deadline.passed]);
    if (deadline.isOver()) {
      const is = `its listener took no connection within ${deadline.timeoutMs} ms`;
      throw new RpcError(GrpcCode.deadlineExceeded, `${what}: ${is}`, { unreachable: true });
    }
  }
}

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Throws the error for a failure to connect, or returns if another attempt may succeed. */
async function refuse(caught: unknown, address: string, what: string): Promise<void> {
  const code = caught instanceof Error && "code" in caught ? String(caught.code) : reasonOf(caught);
  const crowded = code === "ECONNREFUSED" || code === "EAGAIN" || code === "EBUSY";
  if (crowded && (await isListening(address))) return;
  const nobody = crowded || code === "ENOENT";
  const is = nobody ? `nobody listens (${code}), wanted an agent` : connectFailure(code, "an agent");
  throw new RpcError(GrpcCode.unavailable, `${what}: ${is}`, { unreachable: true, absent: nobody, cause: caught });
}

/** Opens the connection and runs the call over it. */
async function open(address: string, call: H2Call): Promise<OpenCall> {
  const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>();
  // Prevents an unhandled rejection after the caller has gone.
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
