import { limits } from "../limits.ts";
import { firstByte } from "./forward/forward-wire.ts";
import type { ForwardedCalls } from "./forward/forwarded-calls.ts";
import { ForwardedConnection } from "./forward/forwarded-connection.ts";
import { type ConnectionOptions, ServerConnection } from "./http2/server-connection.ts";

/** The part of Bun's socket that a connection uses. */
export interface ServedSocket {
  /** How many bytes were taken; negative if the peer has gone. */
  write(bytes: Uint8Array): number;
  pause(): void;
  resume(): void;
  /** No more is written; the peer may still write. Does nothing on a Windows pipe, which ends as a whole. */
  shutdown(): void;
  end(): void;
  terminate(): void;
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

export interface ServedOptions extends Omit<ConnectionOptions, "wake"> {
  /** What answers calls that a plugin's process has handed on; absent: nothing does here. */
  readonly forwarded?: ForwardedCalls | undefined;
  /** Whether the peer is one whose calls are ours to carry out. */
  isTrusted?(): boolean;
}

/** One client's socket, and the protocol on it: gRPC, or one forwarded call. */
export class ServedConnection {
  readonly #socket: ServedSocket;
  readonly #options: ServedOptions;
  /** Absent until the first byte tells which one it is. Most connections carry one forwarded call and need no HTTP/2 state. */
  #protocol: ServerConnection | ForwardedConnection | undefined;
  /** Bytes that the kernel has not taken yet, where there are some. */
  #unsent: Uint8Array | undefined;
  #flushDue = false;
  #opening: ReturnType<typeof setTimeout> | undefined;
  #closed = false;
  /** When the last whole request came or part of an answer was sent; single bytes do not count as activity. */
  #activeMs = performance.now();
  #leaving = false;
  /** Everything that was owed has been written after GOAWAY, and the peer is to close. */
  #served = false;

  constructor(socket: ServedSocket, options: ServedOptions) {
    this.#socket = socket;
    this.#options = options;
  }

  /** Whether a call is at work. */
  get isHandling(): boolean {
    return this.#protocol?.isHandling ?? false;
  }

  /** Its share of the memory for requests. */
  get heldBytes(): number {
    return this.#protocol?.heldBytes ?? 0;
  }

  /** The part of that for incomplete requests. */
  get halfBytes(): number {
    return this.#protocol?.halfBytes ?? 0;
  }

  /** Refuses the incomplete requests; running calls continue. */
  refuseHalf(): void {
    this.#protocol?.refuseHalf();
  }

  receive(chunk: Uint8Array): void {
    const first = chunk[0];
    if (first === undefined) return;
    this.#protocol ??= this.#begin(first);
    const protocol = this.#protocol;
    const { requests } = protocol;
    protocol.receive(chunk);
    if (protocol.requests > requests) this.#activeMs = performance.now();
    if (protocol.canWait) this.#opening ??= setTimeout(() => this.flush(), limits.openingMs);
    else this.flush();
  }

  /** @param byte the first one; absent: gRPC */
  #begin(byte?: number): ServerConnection | ForwardedConnection {
    const { forwarded: calls, isTrusted = () => true, memory, turns } = this.#options;
    if (byte !== firstByte || calls === undefined || this.#leaving)
      return new ServerConnection({ ...this.#options, wake: () => this.#wake() });
    return new ForwardedConnection({ calls, memory, turns, isTrusted, flush: () => this.flush() });
  }

  /** Writes what can be written now. While the peer does not read, nothing is read from it either. */
  flush(): void {
    if (this.#closed) return;
    clearTimeout(this.#opening);
    this.#opening = undefined;
    // Nothing can be written any more, such as the answer to a late PING.
    if (this.#served) this.#protocol?.take();
    else this.#write();
    if (this.#unsent === undefined && this.#protocol?.isOver) this.#over();
  }

  #write(): void {
    const stalled = this.#unsent !== undefined;
    for (;;) {
      const unsent = this.#unsent ?? this.#protocol?.take();
      this.#unsent = unsent;
      if (unsent === undefined) break;
      const written = this.#socket.write(unsent);
      if (written < 0) {
        // The peer has closed, which a paused socket would not report.
        this.#socket.terminate();
        return;
      }
      if (written > 0) this.#activeMs = performance.now();
      if (written < unsent.length) {
        this.#unsent = unsent.subarray(written);
        break;
      }
      this.#unsent = undefined;
    }
    if (this.#unsent !== undefined && !stalled) this.#socket.pause();
    if (this.#unsent === undefined && stalled) this.#socket.resume();
  }

  /**
   * After GOAWAY the peer closes, not we: to close would fail what it is writing just then (EPIPE), and a client that
   * takes this for the end of its calls loses answers that it has not read yet.
   */
  #over(): void {
    if (this.#protocol?.isLeft !== true) this.#socket.end();
    else if (!this.#served) this.#socket.shutdown();
    this.#served = true;
  }

  /** Ends the connection as soon as its calls have ended. */
  leave(): void {
    this.#leaving = true;
    this.#protocol ??= this.#begin();
    this.#protocol.leave();
    this.flush();
  }

  /** To be called periodically: ends a connection that waits for its peer too long. */
  sweep(nowMs: number): void {
    this.#protocol?.refresh();
    if (nowMs - this.#activeMs < limits.idleConnectionMs) return;
    if (this.#unsent !== undefined) this.#socket.terminate();
    else if (this.isHandling) return;
    else if (this.#leaving) this.#socket.terminate();
    else this.leave();
  }

  terminate(): void {
    this.#socket.terminate();
  }

  /** The socket is closed. */
  closed(): void {
    if (this.#closed) return;
    this.#closed = true;
    clearTimeout(this.#opening);
    this.#protocol?.ended();
  }

  /** Scheduled once for everything that a handler sends in one step. */
  #wake(): void {
    if (this.#flushDue) return;
    this.#flushDue = true;
    queueMicrotask(() => {
      this.#flushDue = false;
      this.flush();
    });
  }
}
