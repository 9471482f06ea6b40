import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from "node:http2";
import type { TLSSocket } from "node:tls";
import type { ApiAnswer, ApiRequest } from "./transport.ts";

export interface SessionTimes {
  /** The interval of PING frames, and how long the peer may take to answer one. */
  readonly pingMs: number;
  readonly pongMs: number;
}

/** client-go's own, which load balancers are used to. */
export const usualSessionTimes: SessionTimes = { pingMs: 30_000, pongMs: 15_000 };

/** What the server may send ahead: a page of Pods. Of the connection it must not be more than of a stream: see docs/decisions/kubernetes-client.md. */
const windowBytes = 4 * 1024 * 1024;
/** Bytes that wait to be read on one stream; a reader that falls further behind is cut off. */
const maxHeldBytes = 64 * 1024 * 1024;
/** Requests at a time, most of them watches: the API server allows 100. */
const maxStreams = 90;

/** One connection over HTTP/2. It sends PING frames as long as a stream is open. */
export class Http2Session {
  readonly #session: ClientHttp2Session;
  readonly #times: SessionTimes;
  readonly #pinging: ReturnType<typeof setInterval>;
  readonly #closed: Promise<void>;
  #streams = 0;
  #retired = false;
  #why: Error | undefined;

  constructor(server: URL, socket: TLSSocket, times: SessionTimes) {
    this.#times = times;
    const settings = { enablePush: false, initialWindowSize: windowBytes };
    this.#session = connect(server.origin, { createConnection: () => socket, settings });
    this.#session.setLocalWindowSize(windowBytes);
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#closed = promise;
    this.#session.on("error", (error: Error) => {
      this.#why ??= error;
    });
    this.#session.once("goaway", () => this.retire());
    this.#session.once("close", () => {
      clearInterval(this.#pinging);
      this.#retired = true;
      resolve();
    });
    this.#pinging = setInterval(() => this.#ping(), times.pingMs);
    this.#pinging.unref();
  }

  /** Whether one more request finds room. */
  get isOpen(): boolean {
    return !this.#retired && !this.#session.destroyed && !this.#session.closed && this.#streams < maxStreams;
  }

  get isClosed(): boolean {
    return this.#session.destroyed;
  }

  /** Takes no more requests, and ends with the last one that is under way. */
  retire(): void {
    this.#retired = true;
    if (!this.#session.destroyed) this.#session.close();
  }

  async destroy(): Promise<void> {
    this.#session.destroy();
    await this.#closed;
  }

  async request({ method, path, headers, body: sent }: ApiRequest, signal: AbortSignal): Promise<ApiAnswer> {
    signal.throwIfAborted();
    const stream = this.#session.request({ ":method": method, ":path": path, ...headers }, { endStream: false });
    this.#streams++;
    const body = new StreamBody(stream, signal);
    const { promise, resolve, reject } = Promise.withResolvers<Record<string, unknown>>();
    const fail = (error: Error): void => {
      // The reason why the connection ended says more than the stream's error.
      body.fail(this.#why ?? error);
      reject(this.#why ?? error);
    };
    const onAbort = (): void => {
      fail(signal.reason);
      stream.close(constants.NGHTTP2_CANCEL);
    };
    signal.addEventListener("abort", onAbort, { once: true });
    stream.once("response", resolve);
    stream.on("error", fail);
    stream.once("close", () => {
      this.#streams--;
      signal.removeEventListener("abort", onAbort);
      // A lost connection ends the stream as the server would; part of an answer must not count as the whole.
      const { rstCode } = stream;
      if (rstCode === constants.NGHTTP2_NO_ERROR && this.#why === undefined) body.end();
      fail(new Error(`the API server ended the request without a whole answer (HTTP/2 code ${rstCode})`));
    });
    stream.end(sent);
    const answer = await promise;
    const header = (name: string): string | undefined => {
      const value = answer[name];
      return value === undefined ? undefined : String(value);
    };
    return { status: Number(answer[":status"]), header, body: body.chunks() };
  }

  #ping(): void {
    if (this.#streams === 0 || this.#session.destroyed) return;
    const { pongMs } = this.#times;
    const dead = setTimeout(() => {
      this.#why ??= new Error(`the API server answered no PING within ${pongMs} ms`);
      this.#session.destroy(this.#why);
    }, pongMs);
    this.#session.ping(() => clearTimeout(dead));
  }
}

/**
 * The body of a stream from its first byte. The runtime's own iterator fails with "Premature close" and drops what came
 * if the stream has ended before the first read.
 */
class StreamBody {
  readonly #stream: ClientHttp2Stream;
  readonly #signal: AbortSignal;
  readonly #came: Uint8Array[] = [];
  #held = 0;
  #over: { readonly error: Error | undefined } | undefined;
  #wake: (() => void) | undefined;

  constructor(stream: ClientHttp2Stream, signal: AbortSignal) {
    this.#stream = stream;
    this.#signal = signal;
    stream.on("data", (chunk: Uint8Array) => {
      this.#came.push(chunk);
      this.#held += chunk.length;
      if (this.#held > maxHeldBytes)
        this.fail(new Error(`more than ${maxHeldBytes} bytes of an answer wait to be read`));
      this.#wake?.();
    });
  }

  end(): void {
    this.#over ??= { error: undefined };
    this.#wake?.();
  }

  fail(error: Error): void {
    this.#over ??= { error };
    this.#wake?.();
  }

  async *chunks(): AsyncGenerator<Uint8Array, void> {
    try {
      for (;;) {
        this.#signal.throwIfAborted();
        const chunk = this.#came.shift();
        if (chunk !== undefined) {
          this.#held -= chunk.length;
          yield chunk;
        } else if (this.#over !== undefined) {
          if (this.#over.error !== undefined) throw this.#over.error;
          return;
        } else {
          const { promise, resolve } = Promise.withResolvers<void>();
          this.#wake = resolve;
          await promise;
        }
      }
    } finally {
      this.#came.length = 0;
      this.#stream.close(constants.NGHTTP2_CANCEL);
    }
  }
}
