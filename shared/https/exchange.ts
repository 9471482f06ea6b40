import type { IncomingMessage, ServerResponse } from "node:http";
import type { TLSSocket } from "node:tls";
import { type Asker, Refusal } from "../access/mod.ts";

/** Until the whole body of a request has come. */
const bodyMs = 15_000;

/** Where the bytes of a watch go: the answer of an HTTP request. */
export interface WatchOut {
  /** Answers whether more may be written before `drained` is called. */
  write(bytes: Uint8Array): boolean;
  end(): void;
  destroy(): void;
}

interface ExchangeParts {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly socket: TLSSocket;
  /** Cuts the answer off. */
  readonly abort: () => void;
  readonly known: () => void;
}

/** One request and its answer, over HTTP/1.1 or HTTP/2. */
export class Exchange implements Asker {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly socket: TLSSocket;
  /** To be called where it is known who asks. */
  readonly authenticated: () => void;
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #abort: () => void;

  constructor({ request, response, socket, abort, known }: ExchangeParts) {
    const target = request.url ?? "/";
    const mark = target.indexOf("?");
    this.method = request.method ?? "";
    this.path = mark < 0 ? target : target.slice(0, mark);
    this.query = new URLSearchParams(mark < 0 ? "" : target.slice(mark + 1));
    this.socket = socket;
    this.#request = request;
    this.#response = response;
    this.#abort = abort;
    this.authenticated = known;
    response.on("error", () => undefined);
  }

  /** The client's, in DER, where its chain, its dates and its purpose are in order. */
  get certificate(): Uint8Array | undefined {
    return this.socket.authorized ? this.socket.getPeerCertificate().raw : undefined;
  }

  /** Under which name the server was asked for, with its port where that is not the usual one; empty: none was said. */
  get host(): string {
    return this.header("host") ?? this.header(":authority") ?? "";
  }

  /** @param name in lower case; several of it are joined by commas */
  header(name: string): string | undefined {
    const value = this.#request.headers[name];
    return Array.isArray(value) ? value.join(",") : value;
  }

  /** Aborted when nobody waits for the answer any more. */
  get gone(): AbortSignal {
    const gone = new AbortController();
    if (this.#response.destroyed) gone.abort();
    else this.#response.once("close", () => gone.abort());
    return gone.signal;
  }

  /** All headers that begin so, each with all its values. */
  *headersFrom(prefix: string): Generator<readonly [name: string, value: string]> {
    const raw = this.#request.rawHeaders;
    for (let i = 0; i + 1 < raw.length; i += 2) {
      const name = (raw[i] ?? "").toLowerCase();
      if (name.startsWith(prefix)) yield [name, raw[i + 1] ?? ""];
    }
  }

  /** @throws {Refusal} for one that is longer, or does not come */
  async body(maxBytes: number): Promise<Uint8Array> {
    const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>();
    const chunks: Uint8Array[] = [];
    let length = 0;
    const late = setTimeout(() => reject(new Refusal(408, "the body of the request did not come")), bodyMs);
    this.#request.on("data", (chunk: Uint8Array) => {
      length += chunk.length;
      if (length > maxBytes) reject(new Refusal(413, `the body has more than ${maxBytes} bytes`));
      else chunks.push(chunk);
    });
    this.#request.once("end", () => resolve(Buffer.concat(chunks, length)));
    this.#request.once("close", () => reject(new Refusal(400, "the request broke off")));
    try {
      return await promise;
    } finally {
      clearTimeout(late);
    }
  }

  answer(status: number, contentType: string, body: Uint8Array | string, more: Record<string, string> = {}): void {
    if (this.#response.headersSent || this.#response.destroyed) return;
    const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
    this.#response.writeHead(status, { "content-type": contentType, "content-length": String(bytes.length), ...more });
    this.#response.end(bytes);
    // What the client still sends of a body that nobody wants is not read.
    if (!this.#request.complete && this.method !== "GET") this.#request.resume();
  }

  /** An answer that goes on. */
  stream(
    contentType: string,
    on: { drained(): void; closed(): void },
    more: Readonly<Record<string, string>> = {},
  ): WatchOut {
    const response = this.#response;
    response.writeHead(200, { "content-type": contentType, "cache-control": "no-cache, private", ...more });
    response.on("drain", () => on.drained());
    response.once("close", () => on.closed());
    return {
      write: (bytes) => response.write(bytes),
      end: () => void response.end(),
      destroy: this.#abort,
    };
  }
}
