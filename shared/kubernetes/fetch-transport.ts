import type { TlsMaterial } from "./access.ts";
import { tlsOptions } from "./dial.ts";
import type { ApiAnswer, ApiRequest, Transport } from "./transport.ts";

/**
 * HTTP/1.1, a connection for each request that is under way: for servers and proxies in front of them that speak no
 * HTTP/2, and for those without TLS, such as `kubectl proxy`.
 */
export class FetchTransport implements Transport {
  readonly #server: URL;
  readonly #tls: TlsMaterial | undefined;
  readonly #proxy: URL | undefined;

  constructor(server: URL, tls: TlsMaterial | undefined, proxy: URL | undefined) {
    this.#server = server;
    this.#tls = tls;
    this.#proxy = proxy;
  }

  async request({ method, path, headers, body }: ApiRequest, signal: AbortSignal): Promise<ApiAnswer> {
    const tls = this.#tls === undefined ? {} : { tls: tlsOptions(this.#server, this.#tls) };
    const proxy = this.#proxy === undefined ? {} : { proxy: this.#proxy.href };
    const sent = body === undefined ? {} : { body };
    // Set explicitly, so that no environment variable can have the token printed.
    const own = { verbose: false, redirect: "error", ...tls, ...proxy, ...sent } as const;
    const response = await fetch(`${this.#server.origin}${path}`, { method, headers, signal, ...own });
    return {
      status: response.status,
      header: (name) => response.headers.get(name) ?? undefined,
      body: response.body ?? empty(),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // Its connections are the runtime's, which closes them when they have been idle.
  }
}

async function* empty(): AsyncGenerator<Uint8Array, void> {}
