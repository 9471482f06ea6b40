import { existsSync, renameSync } from "node:fs";
import net from "node:net";
import { Duplex } from "node:stream";
import type { Server } from "@grpc/grpc-js";
import { ServerCredentials } from "@grpc/grpc-js";
import { limits } from "../limits.ts";
import { isWindows } from "../platform.ts";
import { AuthorityRewriter } from "./authority-rewriter.ts";
import { socketIdentity } from "./socket-place.ts";

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
  const listener = net.createServer((socket) => injector.injectConnection(new FrontedConnection(socket)));
  await listen(listener, path, options.mode ?? 0o700);
  if (!isWindows) await lengthenQueue(listener, options.backlog ?? limits.listenBacklog);
  const own = socketIdentity(path);
  return { close: () => close(listener, path, own) };
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

function close(listener: net.Server, path: string, own: string | undefined): Promise<void> {
  if (!listener.listening) return Promise.resolve();
  return new Promise((resolve) => {
    // Bun removes whatever stands at the path when it closes; another program's socket must stay.
    const foreign = !isWindows && existsSync(path) && socketIdentity(path) !== own;
    const aside = `${path}.${process.pid}.aside`;
    if (foreign) renameSync(path, aside);
    try {
      // Answers once the last connection is gone, which may be much later; the socket is closed right away.
      listener.close();
    } finally {
      if (foreign) renameSync(aside, path);
    }
    resolve();
  });
}

/**
 * A connection whose incoming bytes pass through the rewriter. It has to be a stream of its own: Bun reads a plain
 * socket behind JavaScript's back. The price: over such a stream Bun closes on a client that breaks HTTP/2 without
 * saying GOAWAY first.
 */
class FrontedConnection extends Duplex {
  readonly #socket: net.Socket;

  constructor(socket: net.Socket) {
    super();
    this.#socket = socket;
    const rewriter = new AuthorityRewriter();
    socket.on("data", (chunk: Uint8Array) => this.#hand(rewriter.push(chunk)));
    socket.on("end", () => {
      this.#hand(rewriter.end());
      this.push(null);
    });
    socket.on("error", (error) => this.destroy(error));
    socket.on("close", () => this.destroy());
  }

  #hand(parts: readonly Uint8Array[]): void {
    const wanted = parts.map((part) => this.push(part));
    if (wanted.includes(false)) this.#socket.pause();
  }

  override _read(): void {
    this.#socket.resume();
  }

  override _write(chunk: Uint8Array, _encoding: string, callback: (error?: Error | null) => void): void {
    // Not the write's own callback: what waits for that is lost when the server destroys the connection.
    if (this.#socket.write(chunk)) callback();
    else this.#socket.once("drain", callback);
  }

  override _final(callback: () => void): void {
    this.#socket.end(callback);
  }

  override _destroy(error: Error | null, callback: (error: Error | null) => void): void {
    this.#socket.destroy();
    callback(error);
  }
}
