import type { AcceptedSocket, ConnectionHandlers } from "./served-connection.ts";

/**
 * A pipe's connection that takes one piece at a time. Bun itself accepts any amount, also for a peer that never reads,
 * and keeps it in memory without a bound; but it reports when the pipe has taken a piece.
 */
class PacedSocket<T> implements AcceptedSocket<T> {
  /** Set by the handlers, as with Bun's own sockets. */
  declare data: T;
  readonly #socket: Bun.Socket<unknown>;
  #underway = false;

  constructor(socket: Bun.Socket<unknown>) {
    this.#socket = socket;
  }

  /** Bytes that were taken: none while an earlier piece is underway, less than 0 where the peer has gone. */
  write(bytes: Uint8Array): number {
    if (this.#underway || bytes.length === 0) return 0;
    const written = this.#socket.write(bytes);
    this.#underway = written > 0;
    return written;
  }

  /** The pipe has taken the pending piece. */
  drained(): void {
    this.#underway = false;
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  shutdown(): void {}

  end(): void {
    this.#socket.end();
  }

  terminate(): void {
    this.#socket.terminate();
  }
}

/** Wraps handlers of paced sockets for Bun's sockets. */
export function paced<T>(handlers: ConnectionHandlers<T>): Bun.SocketHandler<PacedSocket<T>> {
  return {
    open(socket) {
      socket.data = new PacedSocket(socket);
      handlers.open?.(socket.data);
    },
    data: ({ data }, chunk) => handlers.data?.(data, chunk),
    drain({ data }) {
      data.drained();
      handlers.drain?.(data);
    },
    close: ({ data }) => handlers.close?.(data),
    error: ({ data }, error) => handlers.error?.(data, error),
  };
}
