import { abortable } from "../async/abortable.ts";
import type { ClusterAccess, TlsMaterial } from "./access.ts";
import { dial, proxyFor } from "./dial.ts";
import { FetchTransport } from "./fetch-transport.ts";
import { Http2Session, type SessionTimes, usualSessionTimes } from "./http2-transport.ts";
import type { ApiAnswer, ApiRequest, Transport } from "./transport.ts";

/** The time to connect, also where the request may take longer. */
const dialMs = 10_000;

/** A connection, and the certificates that it was made with. */
interface Made {
  readonly session: Http2Session;
  readonly mark: string;
}

/**
 * The transport to one API server: a single HTTP/2 connection that all requests share, if the server speaks HTTP/2.
 * After a certificate was rotated, later requests use a new connection, and the old one ends with its last request.
 */
export class Connection implements Transport {
  readonly #access: ClusterAccess;
  readonly #server: URL;
  readonly #env: Readonly<Record<string, string | undefined>>;
  readonly #times: SessionTimes;
  readonly #ended = new AbortController();
  /** The newest last. */
  #sessions: Made[] = [];
  #mark = "";
  #dialling: Promise<void> | undefined;
  #fallback: FetchTransport | undefined;

  constructor(
    access: ClusterAccess,
    env: Readonly<Record<string, string | undefined>>,
    times: SessionTimes = usualSessionTimes,
  ) {
    this.#access = access;
    this.#times = times;
    this.#server = new URL(access.server);
    this.#env = env;
  }

  async request(request: ApiRequest, signal: AbortSignal): Promise<ApiAnswer> {
    const path = `${this.#server.pathname.replace(/\/$/, "")}${request.path}`;
    const asked = { ...request, path };
    if (this.#server.protocol !== "https:")
      return await new FetchTransport(this.#server, undefined, this.#proxy()).request(asked, signal);
    for (;;) {
      this.#ended.signal.throwIfAborted();
      const tls = await this.#tls();
      const mark = markOf(tls);
      const way = this.#open(mark);
      // Called without a pause, because other requests may take the free stream meanwhile.
      if (way !== undefined) return await way.request(asked, signal);
      // Concurrent requests share one attempt to connect.
      this.#dialling ??= this.#dial(tls, mark).finally(() => {
        this.#dialling = undefined;
      });
      await abortable(this.#dialling, signal);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended.abort(new Error("the client of the API server has ended"));
    await this.#dialling?.catch(() => undefined);
    await Promise.all(this.#sessions.map(({ session }) => session.destroy()));
  }

  /** An open connection with room for a request, made with the current certificates. */
  #open(mark: string): Http2Session | FetchTransport | undefined {
    if (mark !== this.#mark) {
      for (const { session } of this.#sessions) session.retire();
      this.#fallback = undefined;
      this.#mark = mark;
    }
    this.#sessions = this.#sessions.filter(({ session }) => !session.isClosed);
    return this.#fallback ?? this.#sessions.findLast(({ session, mark: of }) => session.isOpen && of === mark)?.session;
  }

  /** @throws {Error} for one that is no URL of a kind that we speak */
  #proxy(): URL | undefined {
    return proxyFor(this.#server, this.#env, this.#access.proxy);
  }

  async #tls(): Promise<TlsMaterial> {
    const [tls, own] = await Promise.all([this.#access.tls(), this.#access.credentials.certificate?.()]);
    return { ...tls, ...own };
  }

  async #dial(tls: TlsMaterial, mark: string): Promise<void> {
    const signal = AbortSignal.any([this.#ended.signal, AbortSignal.timeout(dialMs)]);
    const socket = await dial(this.#server, tls, this.#proxy(), signal);
    if (socket.alpnProtocol === "h2") {
      this.#sessions.push({ session: new Http2Session(this.#server, socket, this.#times), mark });
      return;
    }
    socket.destroy();
    this.#fallback = new FetchTransport(this.#server, tls, this.#proxy());
  }
}

const markOf = ({ ca = "", cert = "", key = "", serverName = "", insecure = false }: TlsMaterial): string =>
  Bun.hash([ca, cert, key, serverName, insecure].join("\0")).toString();
