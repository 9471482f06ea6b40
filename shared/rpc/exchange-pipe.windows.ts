import { isPipeName, openPipes, type Pipes, pipeAccess } from "../os/pipe.windows.ts";
import { PipeStream } from "../os/pipe-stream.windows.ts";
import { trustedServer, whyNotTrusted } from "../os/pipe-trust.windows.ts";
import { connectFailure } from "../os/rights.ts";
import { winError } from "../os/win32.windows.ts";
import { reasonOf } from "../reason.ts";
import type { H2Call } from "./h2-client.ts";
import { GrpcCode, RpcError } from "./rpc-error.ts";

/** Large enough for nearly every answer with its frames. */
const partBytes = 64 * 1024;

/** Errors of pipes, with the names that they have elsewhere. */
const errorNames: Readonly<Record<number, string>> = {
  [winError.fileNotFound]: "ENOENT",
  [winError.accessDenied]: "EACCES",
};

/** Errors that say that the other end has closed. */
const ends: readonly number[] = [winError.brokenPipe, winError.noData, winError.pipeNotConnected];

/**
 * As `exchange`, over a named pipe and by calls of Windows, because Bun's sockets do not tell who serves a pipe. The
 * whole process blocks until the answer has come.
 * @param name of the pipe
 * @returns the response message; nothing where there was none in time
 * @throws {RpcError} for any other end of the call, such as a server that is no administrator's
 */
export function exchangeByPipe(name: string, call: H2Call, timeoutMs: number, what: string): Uint8Array | undefined {
  const until = performance.now() + timeoutMs;
  const pipes = openPipes();
  const handle = connect(pipes, name, timeoutMs, what);
  using stream = new PipeStream(handle);
  requireAdministrator(pipes.serverOf(handle), what);
  const part = new Uint8Array(new ArrayBuffer(partBytes));
  let unsent = call.take();
  let writable = true;
  for (;;) {
    while (writable && unsent.length > 0) {
      const sent = stream.write(unsent);
      if (sent.t === "pending") break;
      // A failed write is no end: the server may have answered before it closed, which reading shows.
      if (sent.t === "failed") writable = false;
      else unsent = sent.bytes < unsent.length ? unsent.subarray(sent.bytes) : call.take();
    }
    if (call.outcome.t === "answered") return call.outcome.message;
    if (call.outcome.t === "failed") throw call.outcome.error;
    const leftMs = Math.ceil(until - performance.now());
    if (leftMs <= 0) return undefined;
    const got = stream.read(part);
    if (got.t === "pending") stream.wait(leftMs);
    else if (got.t === "done") call.receive(part.subarray(0, got.bytes));
    else call.ended(ends.includes(got.error) ? undefined : `the connection broke (error ${got.error})`);
    if (unsent.length === 0) unsent = call.take();
  }
}

/** Waits while other plugins use every instance of the pipe. */
function connect(pipes: Pipes, name: string, timeoutMs: number, what: string): number {
  const until = performance.now() + timeoutMs;
  const refusal = (code: GrpcCode, is: string, absent = false): RpcError =>
    new RpcError(code, `${what}: ${is}`, { unreachable: true, absent });
  if (!isPipeName(name)) throw refusal(GrpcCode.unavailable, "it is no name of a pipe, wanted an agent");
  for (;;) {
    const attempt = pipes.open(name, pipeAccess.talk);
    if (attempt.t === "open") return attempt.handle;
    const { error } = attempt;
    if (error !== winError.pipeBusy) {
      const code = errorNames[error] ?? `error ${error}`;
      const isAbsent = error === winError.fileNotFound;
      throw refusal(
        GrpcCode.unavailable,
        isAbsent ? `nobody listens (${code}), wanted an agent` : connectFailure(code, "an agent"),
        isAbsent,
      );
    }
    const leftMs = Math.ceil(until - performance.now());
    if (leftMs <= 0)
      throw refusal(GrpcCode.deadlineExceeded, `all of its instances were taken for ${timeoutMs} ms, wanted an agent`);
    pipes.waitForInstance(name, leftMs);
  }
}

/** A runtime's configuration must not go to an untrusted program. */
function requireAdministrator(pid: number | undefined, what: string): void {
  const refusal = (code: GrpcCode, is: string, wanted: string): RpcError =>
    new RpcError(code, `${what}: ${is}, wanted ${wanted}`, { unreachable: true });
  let is: string | undefined;
  try {
    is = whyNotTrusted(pid);
  } catch (caught) {
    throw refusal(GrpcCode.unavailable, reasonOf(caught), "an agent");
  }
  if (is !== undefined) throw refusal(GrpcCode.unauthenticated, is, trustedServer);
}
