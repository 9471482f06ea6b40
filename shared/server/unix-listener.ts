import { existsSync, renameSync } from "node:fs";
import { limits } from "../limits.ts";
import { isWindows } from "../os/platform.ts";
import type { ServedSocket } from "./served-connection.ts";
import { socketIdentity } from "./socket-place.linux.ts";

export interface ListenOptions {
  /** Connections that may wait to be accepted; the kernel may allow less. */
  readonly backlog?: number;
  /** Connections at a time; absent: as many as the process can well have. */
  readonly connections?: number;
}

/** One connection, and what belongs to it. */
export interface AcceptedSocket<T> extends ServedSocket {
  data: T;
}

/** As Bun's own. Chunks are plain arrays. */
export interface ConnectionHandlers<T> {
  open?(socket: AcceptedSocket<T>): void;
  data?(socket: AcceptedSocket<T>, chunk: Uint8Array): void;
  drain?(socket: AcceptedSocket<T>): void;
  close?(socket: AcceptedSocket<T>): void;
  error?(socket: AcceptedSocket<T>, error: Error): void;
}

/** Permission bits of the socket: root's alone. A pipe has none, see `PipePlace`. */
const socketMode = 0o700;

/**
 * Listens on a unix socket, or on a Windows pipe. The socket has its rights from its first moment on, and a queue
 * for a crowd of plugins.
 */
export class UnixListener {
  readonly #path: string;
  readonly #listener: { stop(): void };
  readonly #own: string | undefined;
  #closed = false;

  private constructor(path: string, listener: { stop(): void }) {
    this.#path = path;
    this.#listener = listener;
    this.#own = isWindows ? undefined : socketIdentity(path);
  }

  /**
   * @param path must be free: a socket file left behind is refused with EADDRINUSE
   * @throws {NodeJS.ErrnoException} where the socket cannot be made
   */
  static async listen<T>(path: string, options: ListenOptions, handlers: ConnectionHandlers<T>): Promise<UnixListener> {
    const binaryType = "uint8array";
    if (isWindows) {
      const { paced } = await import("./paced-socket.windows.ts");
      return new UnixListener(path, Bun.listen({ unix: path, socket: { binaryType, ...paced(handlers) } }));
    }
    const { listenAgain } = await import("./backlog.linux.ts");
    // The socket is made inside of this call, so the mask covers it and nothing else.
    const mask = process.umask(0o777 & ~socketMode);
    let listener: Bun.UnixSocketListener<T>;
    try {
      listener = Bun.listen<T>({ unix: path, socket: { binaryType, ...handlers } });
    } finally {
      process.umask(mask);
    }
    try {
      // Bun's own queue is 512: a crowd of plugins fills that, and the rest is refused.
      listenAgain(fdOf(listener), options.backlog ?? limits.listenBacklog);
    } catch (caught) {
      listener.stop();
      throw caught;
    }
    return new UnixListener(path, listener);
  }

  /** Takes no more connections and removes the socket; connections that stand go on. Repeatable. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    // Bun removes whatever stands at the path when it closes; another program's socket must stay.
    const foreign = !isWindows && existsSync(this.#path) && socketIdentity(this.#path) !== this.#own;
    const aside = `${this.#path}.${process.pid}.aside`;
    if (foreign) renameSync(this.#path, aside);
    try {
      this.#listener.stop();
    } finally {
      if (foreign) renameSync(aside, this.#path);
    }
  }
}

/** Bun has it and its types do not say so. */
function fdOf(listener: object): number {
  const fd: unknown = Reflect.get(listener, "fd");
  if (typeof fd === "number" && fd >= 0) return fd;
  throw new Error(`Cannot lengthen the queue of connections: the listener's fd is ${String(fd)}, wanted a number`);
}
