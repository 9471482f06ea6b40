import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from "node:http2";
import type { TLSSocket } from "node:tls";
import type { ApiAnswer, ApiRequest } from "./transport.ts";

export interface SessionTimes {
  /** Between two questions to a peer whether it is still there; and how long it may take to answer. */
  readonly pingMs: number;
  readonly pongMs: number;
}

/** client-go's own, which load balancers are used to. */
export const usualSessionTimes: SessionTimes = { pingMs: 30_000, pongMs: 15_000 };

/** What the server may send ahead: a page of Pods. Of the connection it must not be more than of a stream: see docs/decisions.md. */
const windowBytes = 4 * 1024 * 1024;
/** Requests at a time, most of them watches: the API server allows 100. */
const mostStreams = 90;

/** One connection over HTTP/2. It asks whether its peer is there as long as anything is open on it. */
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
    return !this.#retired && !this.#session.destroyed && !this.#session.closed && this.#streams < mostStreams;
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

  async request({ method, path, headers, body }: ApiRequest, signal: AbortSignal): Promise<ApiAnswer> {
    signal.throwIfAborted();
    const stream = this.#session.request({ ":method": method, ":path": path, ...headers }, { endStream: false });
    this.#streams++;
    const { promise, resolve, reject } = Promise.withResolvers<Record<string, unknown>>();
    const onAbort = (): void => {
      reject(signal.reason);
      stream.close(constants.NGHTTP2_CANCEL);
    };
    signal.addEventListener("abort", onAbort, { once: true });
    stream.once("response", resolve);
    stream.on("error", (error: Error) => {
      // What happened to the connection says more than what that did to the stream.
      this.#why ??= error;
      reject(this.#why);
    });
    stream.once("close", () => {
      this.#streams--;
      signal.removeEventListener("abort", onAbort);
      reject(this.#why ?? new Error("the API server ended the request without an answer"));
    });
    stream.end(body);
    const answer = await promise;
    const header = (name: string): string | undefined => {
      const value = answer[name];
      return value === undefined ? undefined : String(value);
    };
    return { status: Number(answer[":status"]), header, body: this.#bodyOf(stream, signal) };
  }

  async *#bodyOf(stream: ClientHttp2Stream, signal: AbortSignal): AsyncGenerator<Uint8Array, void> {
    try {
      for await (const chunk of stream) {
        signal.throwIfAborted();
        yield chunk as Uint8Array;
      }
    } catch (caught) {
      signal.throwIfAborted();
      throw this.#why ?? caught;
    } finally {
      stream.close(constants.NGHTTP2_CANCEL);
    }
    signal.throwIfAborted();
    // An end that is none of the server's looks like one: a part of an answer must not count as all of it.
    if (stream.rstCode !== constants.NGHTTP2_NO_ERROR || this.#why !== undefined)
      throw this.#why ?? new Error(`the API server reset the answer (HTTP/2 code ${stream.rstCode})`);
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
