import net from "node:net";
import type { Server } from "@grpc/grpc-js";
import { ServerCredentials } from "@grpc/grpc-js";
import { limits } from "../../shared/limits.ts";
import { isWindows } from "../../shared/platform.ts";
import { AuthorityRewriter } from "./authority-rewriter.ts";

export interface ListenOptions {
  /** Permission bits of the socket, from its first moment on: 0700 when not given. Windows has none. */
  readonly mode?: number;
  /** Connections that may wait to be accepted; the kernel may allow less. */
  readonly backlog?: number;
}

export interface UnixListener {
  /**
   * Takes no more connections and removes the socket; connections that stand are the gRPC server's to end,
   * by its `tryShutdown` or `forceShutdown`. Repeatable.
   */
  close(): Promise<void>;
}

/**
 * Lets a gRPC server serve a unix socket, or a Windows pipe, through a front of our own: it makes the `:authority`
 * of older Go clients acceptable (`AuthorityRewriter`) and has a longer queue than the server's own listener.
 * @param path must be free: a socket file left behind is refused with EADDRINUSE
 * @throws {NodeJS.ErrnoException} where the socket cannot be made
 */
export async function listenUnix(server: Server, path: string, options: ListenOptions = {}): Promise<UnixListener> {
  const injector = server.createConnectionInjector(ServerCredentials.createInsecure());
  const listener = net.createServer((socket) => injector.injectConnection(fronted(socket)));
  await listen(listener, path, options.mode ?? 0o700);
  if (!isWindows) await lengthenQueue(listener, options.backlog ?? limits.listenBacklog);
  return { close: () => close(listener) };
}

function listen(listener: net.Server, path: string, mode: number): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  listener.once("error", reject);
  // The socket is made inside of this call, so the mask covers it and nothing else.
  const mask = process.umask(0o777 & ~mode);
  try {
    listener.listen(path, () => {
      listener.off("error", reject);
      resolve();
    });
  } finally {
    process.umask(mask);
  }
  return promise;
}

/** Bun listens with a queue of 512 whatever it is told: a crowd of plugins fills that, and the rest is refused. */
async function lengthenQueue(listener: net.Server, backlog: number): Promise<void> {
  const { listenAgain } = await import("./backlog.linux.ts");
  const handle: unknown = Reflect.get(listener, "_handle");
  const fd: unknown = typeof handle === "object" && handle !== null ? Reflect.get(handle, "fd") : undefined;
  if (typeof fd === "number" && fd >= 0) listenAgain(fd, backlog);
}

function close(listener: net.Server): Promise<void> {
  if (!listener.listening) return Promise.resolve();
  return new Promise((resolve) => {
    // Answers once the last connection is gone, which may be much later; the socket is closed right away.
    listener.close();
    resolve();
  });
}

/**
 * The socket, its incoming bytes rewritten on their way to whoever listens. Not a stream around it, which would be
 * the usual way: Bun's HTTP/2 says GOAWAY only on a socket of its own, and writes faster there.
 */
function fronted(socket: net.Socket): net.Socket {
  const rewriter = new AuthorityRewriter();
  const emit = socket.emit.bind(socket);
  const hand = (parts: readonly Uint8Array[]): boolean => {
    let heard = false;
    for (const part of parts) heard = emit("data", Buffer.from(part.buffer, part.byteOffset, part.length)) || heard;
    return heard;
  };
  socket.emit = (event: string | symbol, ...values: unknown[]): boolean => {
    const [chunk] = values;
    if (event === "data" && chunk instanceof Uint8Array) return hand(rewriter.push(chunk));
    if (event === "end") hand(rewriter.end());
    return emit(event, ...values);
  };
  return socket;
}
