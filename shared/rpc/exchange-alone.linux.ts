import { intAt, openLibrary } from "../os/native.linux.ts";
import { connectFailure } from "../os/rights.ts";
import type { H2Call } from "./h2-client.ts";
import { GrpcCode, RpcError } from "./rpc-error.ts";

const symbols = {
  socket: { args: ["i32", "i32", "i32"], returns: "i32" },
  setsockopt: { args: ["i32", "i32", "i32", "ptr", "u32"], returns: "i32" },
  getsockopt: { args: ["i32", "i32", "i32", "ptr", "ptr"], returns: "i32" },
  connect: { args: ["i32", "ptr", "u32"], returns: "i32" },
  poll: { args: ["ptr", "u64", "i32"], returns: "i32" },
  send: { args: ["i32", "ptr", "usize", "i32"], returns: "i32" },
  recv: { args: ["i32", "ptr", "usize", "i32"], returns: "i32" },
  close: { args: ["i32"], returns: "i32" },
  __errno_location: { args: [], returns: "ptr" },
} as const;

/** <sys/socket.h>, <sys/un.h> and <poll.h> of Linux, the same on every architecture that Bun compiles for. */
const unixFamily = 1;
const streamCloseOnExec = 1 | 0o2000000;
const socketLevel = 1;
const sendTimeout = 21;
/** SO_PEERCRED: `struct ucred`, pid, uid and gid of the process that called listen(2). */
const peerCredentials = 17;
const noSignalNoWait = 0x4000 | 0x40;
const readable = 1;
const writable = 4;
const addressBytes = 110;
const longestPath = 107;
const errnoNames = (): Readonly<Record<number, string>> => ({
  2: "ENOENT",
  4: "EINTR",
  11: "EAGAIN",
  13: "EACCES",
  20: "ENOTDIR",
  32: "EPIPE",
  104: "ECONNRESET",
  111: "ECONNREFUSED",
});

/** Large enough for nearly every answer with its frames. */
const partBytes = 64 * 1024;

/**
 * As `exchange`, by system calls: the whole process blocks until the answer has come. Bun's sockets, timers and
 * promises would cost a process of a few milliseconds half a millisecond. If the listener's queue is full, `connect`
 * waits in the kernel. Few functions on purpose, because the first call of each is expensive.
 * @returns the response message; nothing if none came in time; `"unable"` where the system forbids Bun's JIT and so
 * calls of C, in which case nothing was tried
 * @throws {RpcError} for any other end of the call
 */
export function exchangeAlone(
  address: string,
  call: H2Call,
  timeoutMs: number,
  what: string,
): Uint8Array | undefined | "unable" {
  const c = openLibrary("libc.so.6", symbols);
  if (c === undefined) return "unable";
  const until = performance.now() + timeoutMs;
  const fd = c.socket(unixFamily, streamCloseOnExec, 0);
  try {
    connect(c, fd, address, timeoutMs, what);
    requireOwnServer(c, fd, what);
    // `struct pollfd`: the descriptor, then the awaited and the returned events.
    const wait = new Int32Array([fd, readable]);
    const part = new Uint8Array(partBytes);
    let unsent = call.take();
    for (;;) {
      while (unsent.length > 0) {
        const sent = c.send(fd, unsent, unsent.length, noSignalNoWait);
        // Unsent bytes are sent later; if the server has gone, reading shows it.
        if (sent < 0) break;
        unsent = sent < unsent.length ? unsent.subarray(sent) : call.take();
      }
      if (call.outcome.t === "answered") return call.outcome.message;
      if (call.outcome.t === "failed") throw call.outcome.error;
      const leftMs = Math.ceil(until - performance.now());
      if (leftMs <= 0) return undefined;
      wait[1] = unsent.length > 0 ? readable | writable : readable;
      // A timeout or a signal; the loop's deadline decides.
      if (c.poll(wait, 1, leftMs) <= 0) continue;
      const got = c.recv(fd, part, part.length, noSignalNoWait);
      if (got > 0) call.receive(part.subarray(0, got));
      else if (got === 0) call.ended();
      else {
        const code = errnoOf(c);
        if (code !== "EAGAIN" && code !== "EINTR") call.ended(`the connection broke (${code})`);
      }
      if (unsent.length === 0) unsent = call.take();
    }
  } finally {
    c.close(fd);
  }
}

type Calls = NonNullable<ReturnType<typeof openLibrary<typeof symbols>>>;

/** @throws {RpcError} `unreachable` */
function connect(c: Calls, fd: number, address: string, timeoutMs: number, what: string): void {
  const place = new Uint8Array(addressBytes);
  place[0] = unixFamily;
  const { read: units, written } = new TextEncoder().encodeInto(address, place.subarray(2, 2 + longestPath));
  const fail = (code: GrpcCode, is: string): never => {
    throw new RpcError(code, `${what}: ${is}`, { unreachable: true });
  };
  if (units < address.length) fail(GrpcCode.unavailable, `the path is longer than ${written} bytes`);
  // `struct timeval`: seconds and microseconds of 64 bits, of which the lower halves are enough.
  const time = new Int32Array([timeoutMs / 1000, 0, (timeoutMs % 1000) * 1000, 0]);
  c.setsockopt(fd, socketLevel, sendTimeout, time, time.byteLength);
  while (c.connect(fd, place, addressBytes) < 0) {
    const code = errnoOf(c);
    if (code === "EINTR") continue;
    if (code === "EAGAIN") fail(GrpcCode.deadlineExceeded, `its listener took no connection within ${timeoutMs} ms`);
    if (code === "ENOENT" || code === "ECONNREFUSED")
      throw new RpcError(GrpcCode.unavailable, `${what}: nobody listens (${code}), wanted an agent`, { absent: true });
    fail(GrpcCode.unavailable, connectFailure(code, "an agent"));
  }
}

/**
 * The server must run as root (or as this user): before the agent starts, another user may have put a socket in its
 * place, which would learn and decide pods' networks.
 * @throws {RpcError} `unreachable`
 */
function requireOwnServer(c: Calls, fd: number, what: string): void {
  const credentials = new Uint32Array(3);
  const length = new Uint32Array([credentials.byteLength]);
  const known = c.getsockopt(fd, socketLevel, peerCredentials, credentials, length) === 0;
  const uid = known ? credentials[1] : undefined;
  if (uid === 0 || (known && uid === process.geteuid?.())) return;
  const is = `user ${uid ?? "unknown"} listens there, wanted root`;
  throw new RpcError(GrpcCode.unavailable, `${what}: ${is}`, { unreachable: true });
}

/** The errno of the call that just failed. */
function errnoOf(c: Calls): string {
  const number = intAt(c.__errno_location());
  return errnoNames()[number] ?? `errno ${number}`;
}
