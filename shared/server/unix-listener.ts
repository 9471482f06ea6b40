import { existsSync, renameSync } from "node:fs";
import { limits } from "../limits.ts";
import { isWindows } from "../os/platform.ts";
import type { ConnectionHandlers } from "./served-connection.ts";
import { listenAgain, socketIdentity } from "./socket-place.linux.ts";

export interface ListenOptions {
  /** Connections that may wait to be accepted; the kernel may allow less. */
  readonly backlog?: number;
  /** Connections at a time; absent: a share of the process's descriptors. */
  readonly connections?: number;
}

/** Permission bits of the socket: root's alone. A pipe has none, see `PipePlace`. */
const socketMode = 0o700;

/**
 * Listens on a unix socket, or on a Windows pipe. The socket is created with its final rights and with a queue long
 * enough for many plugins.
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
    // The socket is created inside this call, so the mask affects nothing else.
    const mask = process.umask(0o777 & ~socketMode);
    let listener: Bun.UnixSocketListener<T>;
    try {
      listener = Bun.listen<T>({ unix: path, socket: { binaryType, ...handlers } });
    } finally {
      process.umask(mask);
    }
    try {
      // Bun's own queue is 512, which many plugins at once fill; further ones would be refused.
      listenAgain(fdOf(listener), options.backlog ?? limits.listenBacklog);
    } catch (caught) {
      listener.stop();
      throw caught;
    }
    return new UnixListener(path, listener);
  }

  /** Takes no more connections and removes the socket; open connections continue. May be called repeatedly. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    // Bun removes any file at the path when it closes; another program's socket must stay.
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

/** Bun has this property, but its types lack it. */
function fdOf(listener: object): number {
  const fd: unknown = Reflect.get(listener, "fd");
  if (typeof fd === "number" && fd >= 0) return fd;
  throw new Error(`Cannot lengthen the queue of connections: the listener's fd is ${String(fd)}, wanted a number`);
}
