import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createHttp2Server } from "node:http2";
import { type AddressInfo, createServer as createTcpServer, type Server } from "node:net";
import { createServer as createTlsServer, type TLSSocket, Server as TlsServer } from "node:tls";
import { Exchange } from "./exchange.ts";

/** In PEM. */
export interface ServerTls {
  readonly cert: string;
  readonly key: string;
  /**
   * Those whose certificates may say who a client is. Clients without one come with a token. Absent: none is asked for
   * one, since browsers would ask their users.
   */
  readonly clientCas?: readonly string[];
}

export interface HttpsBounds {
  readonly maxConnections: number;
  /** Of a connection on which nothing is asked, until it has brought somebody who is known: pods can connect as well. */
  readonly strangerMs: number;
}

/** A thousand nodes with three watches each, on connections of their own, and room for operators. */
const usualBounds: HttpsBounds = { maxConnections: 10_000, strangerMs: 15_000 };
/** Requests at a time of one connection over HTTP/2: the aggregation layer's are those of many clients. */
const maxStreams = 250;
const maxHeaderBytes = 64 * 1024;
/** A peer that is gone without a word is found by the kernel's probes. */
const keepAliveMs = 30_000;

/**
 * HTTPS for clients of Kubernetes: HTTP/2, and HTTP/1.1 for those that do not speak it. Its certificate can be replaced
 * while connections go on. One port for both, and certificates of clients, are what neither of the runtime's own servers
 * has at once. Without a certificate it is plain HTTP/1.1, for a loopback address.
 */
export class HttpsServer implements AsyncDisposable {
  readonly #handle: (exchange: Exchange) => void;
  readonly #listener: Server;
  readonly #strangerMs: number;
  readonly #sockets = new Set<Admitted>();
  /** By whom clients may be certified who connect now. */
  #clientCas: string;

  private constructor(
    tls: ServerTls | undefined,
    handle: (exchange: Exchange) => void,
    { maxConnections, strangerMs }: HttpsBounds,
  ) {
    this.#handle = handle;
    this.#strangerMs = strangerMs;
    this.#clientCas = clientCasIn(tls);
    const http1 = createServer({ maxHeaderSize: maxHeaderBytes }, (request, response) => {
      const socket = request.socket as TLSSocket;
      this.#serve(request, response, socket, () => socket.destroy());
    });
    const settings = { maxConcurrentStreams: maxStreams, maxHeaderListSize: maxHeaderBytes };
    const http2 = createHttp2Server({ settings }, (request, response) => {
      const { stream } = request;
      const socket = stream.session?.socket as TLSSocket | undefined;
      // Requests of both have the same shape as far as an exchange uses it, though not for the compiler.
      const [asked, answer] = [request as unknown as IncomingMessage, response as unknown as ServerResponse];
      if (socket !== undefined) this.#serve(asked, answer, socket, () => stream.close());
    });
    // The fault of one connection ends that one.
    http1.on("clientError", (_, socket) => socket.destroy());
    http2.on("sessionError", () => undefined);
    if (tls === undefined) this.#listener = createTcpServer();
    else {
      const requestCert = tls.clientCas !== undefined;
      const options = { ...contextOf(tls), requestCert, rejectUnauthorized: false, ALPNProtocols };
      this.#listener = createTlsServer(options, (socket) => {
        (socket.alpnProtocol === "h2" ? http2 : http1).emit("connection", socket);
      });
    }
    // Before the handshake: who never begins one holds a connection as well.
    this.#listener.on("connection", (socket) => this.#admit(socket as TLSSocket));
    if (tls === undefined) this.#listener.on("connection", (socket) => http1.emit("connection", socket));
    this.#listener.maxConnections = maxConnections;
    this.#listener.on("tlsClientError", () => undefined);
  }

  /** @throws {Error} where nobody may listen there */
  static async listen(
    { host, port }: { readonly host: string; readonly port: number },
    tls: ServerTls | undefined,
    handle: (exchange: Exchange) => void,
    bounds: Partial<HttpsBounds> = {},
  ): Promise<HttpsServer> {
    const server = new HttpsServer(tls, handle, { ...usualBounds, ...bounds });
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    server.#listener.once("error", reject);
    server.#listener.listen(port, host, resolve);
    await promise;
    return server;
  }

  get port(): number {
    return (this.#listener.address() as AddressInfo).port;
  }

  get connections(): number {
    return this.#sockets.size;
  }

  /**
   * For connections that come from now on. With other authorities of clients those end that have brought nobody who is
   * known: whether a client's certificate holds is decided with the handshake, and an API server stays on its connection
   * for as long as it has anything to ask.
   */
  replaceTls(tls: ServerTls): void {
    if (!(this.#listener instanceof TlsServer)) return;
    this.#listener.setSecureContext(contextOf(tls));
    const clientCas = clientCasIn(tls);
    if (clientCas === this.#clientCas) return;
    this.#clientCas = clientCas;
    for (const socket of this.#sockets) if (socket[patienceOf]?.isStranger === true) socket.destroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#listener.close(() => resolve());
    for (const socket of this.#sockets) socket.destroy();
    await promise;
  }

  #admit(socket: Admitted): void {
    this.#sockets.add(socket);
    socket.on("error", () => undefined);
    socket.setKeepAlive(true, keepAliveMs);
    const patience = new Patience(this.#strangerMs, () => socket.destroy());
    socket[patienceOf] = patience;
    socket.once("close", () => {
      this.#sockets.delete(socket);
      patience.end();
    });
  }

  #serve(request: IncomingMessage, response: ServerResponse, socket: Admitted, abort: () => void): void {
    const patience = socket[patienceOf];
    patience?.asked();
    response.once("close", () => patience?.answered());
    this.#handle(new Exchange({ request, response, socket, abort, known: () => patience?.end() }));
  }
}

/** A property, because HTTP/2 hands out stand-ins of its sockets. */
const patienceOf = Symbol("patience");

interface Admitted extends TLSSocket {
  [patienceOf]?: Patience;
}

/** With a connection that nobody who is known has used yet. */
class Patience {
  readonly #ms: number;
  readonly #lost: () => void;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #asking = 0;
  #hasEnded = false;

  constructor(ms: number, lost: () => void) {
    this.#ms = ms;
    this.#lost = lost;
    this.#timer = setTimeout(lost, ms);
  }

  /** Until it has brought somebody who is known. */
  get isStranger(): boolean {
    return !this.#hasEnded;
  }

  asked(): void {
    this.#asking++;
    clearTimeout(this.#timer);
  }

  answered(): void {
    if (--this.#asking === 0 && !this.#hasEnded) this.#timer = setTimeout(this.#lost, this.#ms);
  }

  end(): void {
    this.#hasEnded = true;
    clearTimeout(this.#timer);
  }
}

const ALPNProtocols = ["h2", "http/1.1"];

const clientCasIn = (tls: ServerTls | undefined): string => (tls?.clientCas ?? []).join("\n");

function contextOf({ cert, key, clientCas = [] }: ServerTls) {
  return { cert, key, ca: [...clientCas] };
}
