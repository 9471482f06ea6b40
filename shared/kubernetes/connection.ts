import type { ClusterAccess, TlsMaterial } from "./access.ts";
import { dial, proxyFor } from "./dial.ts";
import { FetchTransport } from "./fetch-transport.ts";
import { Http2Session, type SessionTimes, usualSessionTimes } from "./http2-transport.ts";
import type { ApiAnswer, ApiRequest, Transport } from "./transport.ts";

/** A connection that cannot be made within this time is given up, whatever the request behind it may wait. */
const dialMs = 10_000;

/** A connection, and what was known of certificates when it was made. */
interface Made {
  readonly session: Http2Session;
  readonly mark: string;
}

/**
 * The way to one API server: a single connection over HTTP/2 that all requests share, as long as the server speaks it.
 * Where a certificate was rotated, later requests go by a new connection, and the old one ends with what it carries.
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
      // Asked at once: a moment later others may have taken the room that it has.
      if (way !== undefined) return await way.request(asked, signal);
      // Of many requests at once, one makes the connection for all.
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

  /** What there is that has room, and was made with the certificates of now. */
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

/** What comes of `work` once the signal is aborted is nobody's any more. */
function abortable<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const onAbort = (): void => reject(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) onAbort();
  return Promise.race([work, promise]).finally(() => signal.removeEventListener("abort", onAbort));
}
