import { readFileSync } from "node:fs";
import { checkServerIdentity } from "node:tls";
import {
  type ChannelCredentials,
  type ChannelOptions,
  type Client,
  type ClientDuplexStream,
  type ClientUnaryCall,
  credentials,
  Metadata,
  makeGenericClientConstructor,
  type ServiceError,
} from "@grpc/grpc-js";
import { CniCode, CniError } from "../../../shared/errors.ts";
import { parseIp } from "../../../shared/net/ip.ts";
import type { Method } from "../../../shared/proto/services.ts";
import { reasonOf } from "../../../shared/reason.ts";
import { GrpcCode } from "../../../shared/rpc/rpc-error.ts";
import { etcdError } from "./etcd-error.ts";
import { etcdLimits } from "./etcd-limits.ts";
import { type WatchRequest, type WatchResponse, watchMethod } from "./messages.ts";

/** A member of the cluster, and how to speak with it. */
export interface Endpoint {
  /** As it was configured, for messages. */
  readonly url: string;
  /** In grpc-js' own notation. */
  readonly target: string;
  readonly credentials: ChannelCredentials;
  readonly options: ChannelOptions;
}

/** Paths of PEM files. */
interface TlsFiles {
  readonly ca?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
}

const wanted = "wanted http://HOST:PORT or https://HOST:PORT";

/** The endpoints, in their order. @throws {CniError} 7 for what is no endpoint, and for files that cannot be read */
export function parseEndpoints(urls: readonly string[], files: TlsFiles): readonly Endpoint[] {
  if (urls.length === 0) throw refused(`the list of endpoints is empty, ${wanted}`);
  if ((files.cert === undefined) !== (files.key === undefined))
    throw refused(`one of "cert" and "key" is missing, wanted both or none`);
  const secrets = { ca: read("ca", files.ca), cert: read("cert", files.cert), key: read("key", files.key) };
  const anyFile = Object.values(secrets).some((secret) => secret !== undefined);
  return urls.map((text) => {
    const url = URL.canParse(text) ? new URL(text) : undefined;
    const plain = url?.pathname === "/" && url.username === "" && url.search === "" && url.hash === "";
    if (url === undefined || !plain || !["http:", "https:"].includes(url.protocol))
      throw refused(`"${text}" is no endpoint, ${wanted}`);
    if (url.protocol === "http:" && anyFile)
      throw refused(`"${text}" is not encrypted and there are certificates, wanted https`);
    return endpoint(text, url, secrets);
  });
}

type Secrets = Readonly<Record<"ca" | "cert" | "key", Buffer | undefined>>;

function endpoint(text: string, url: URL, { ca, cert, key }: Secrets): Endpoint {
  const host = url.hostname.replace(/^\[|\]$/g, "");
  const ip = parseIp(host);
  const port = url.port === "" ? (url.protocol === "https:" ? "443" : "80") : url.port;
  const scheme = ip === undefined ? "dns" : ip.family === 4 ? "ipv4" : "ipv6";
  const target = `${scheme}:${url.hostname}:${port}`;
  if (url.protocol === "http:") return { url: text, target, credentials: credentials.createInsecure(), options: {} };
  // TLS knows no addresses as server names, and Bun refuses them: another name is asked for, and the certificate is
  // held against the address all the same.
  const verify =
    ip === undefined
      ? {}
      : {
          checkServerIdentity: (_: string, peer: Parameters<typeof checkServerIdentity>[1]) =>
            checkServerIdentity(host, peer),
        };
  const options =
    ip === undefined
      ? {}
      : { "grpc.ssl_target_name_override": "etcd.internal", "grpc.default_authority": `${url.hostname}:${port}` };
  try {
    return {
      url: text,
      target,
      credentials: credentials.createSsl(ca ?? null, key ?? null, cert ?? null, verify),
      options,
    };
  } catch (cause) {
    const why = reasonOf(cause);
    throw refused(`the certificates cannot be used (${why}), wanted PEM files that belong together`, cause);
  }
}

/** What every channel to a member has in common. */
const channelOptions: ChannelOptions = {
  "grpc.max_receive_message_length": etcdLimits.messageBytes,
  "grpc.keepalive_time_ms": etcdLimits.pingMs,
  "grpc.keepalive_timeout_ms": etcdLimits.pingAnswerMs,
  "grpc.initial_reconnect_backoff_ms": etcdLimits.connectRetryFirstMs,
  "grpc.max_reconnect_backoff_ms": etcdLimits.connectRetryMostMs,
  // A watch starves where it shares a connection with large lists.
  "grpc.use_local_subchannel_pool": 1,
  // A repeated call may be carried out twice, so our callers check the state before they retry.
  "grpc.enable_retries": 0,
  // The registry is never reached through a proxy of the environment.
  "grpc.enable_http_proxy": 0,
};

function read(what: string, path: string | undefined): Buffer | undefined {
  if (path === undefined) return undefined;
  try {
    return readFileSync(path);
  } catch (cause) {
    const why = reasonOf(cause);
    throw refused(`"${what}" cannot be read (${why}), wanted a PEM file`, cause);
  }
}

const refused = (is: string, cause?: unknown): CniError =>
  new CniError(CniCode.invalidConfig, `Cannot use the etcd registry: ${is}`, { cause });

/** One channel to one member. It connects at the first call, and again where the connection was lost. */
export class EtcdConnection implements Disposable {
  readonly #client: Client;
  readonly #calls = new Set<ClientUnaryCall>();

  constructor({ target, credentials, options }: Endpoint) {
    const EtcdStub = makeGenericClientConstructor({}, "Etcd");
    this.#client = new EtcdStub(target, credentials, { ...channelOptions, ...options });
  }

  /** One try. @throws {EtcdError} */
  call<Req, Res>(method: Method<Req, Res>, request: Req, timeoutMs: number): Promise<Res> {
    const { promise, resolve, reject } = Promise.withResolvers<Res>();
    const [encode, decode] = codecsOf(method);
    const deadline = { deadline: Date.now() + timeoutMs };
    const call = this.#client.makeUnaryRequest(
      method.path,
      encode,
      decode,
      request,
      needsLeader(),
      deadline,
      (error, answer) => {
        this.#calls.delete(call);
        if (answer === undefined) reject(errorOf(error));
        else resolve(answer);
      },
    );
    this.#calls.add(call);
    return promise;
  }

  /** A stream of watches, without a deadline: the caller supervises it. Its errors go through `errorOf`. */
  openWatch(): ClientDuplexStream<WatchRequest, WatchResponse> {
    const [encode, decode] = codecsOf(watchMethod);
    return this.#client.makeBidiStreamRequest(watchMethod.path, encode, decode, needsLeader());
  }

  /** Calls that run end with it: the process would live as long as they do. */
  [Symbol.dispose](): void {
    for (const call of this.#calls) call.cancel();
    this.#client.close();
  }
}

/** Has a member without a majority fail calls and watches at once instead of holding them. */
function needsLeader(): Metadata {
  const metadata = new Metadata();
  metadata.set("hasleader", "true");
  return metadata;
}

export function errorOf(caught: unknown): Error {
  const { code, details } = (caught ?? {}) as Partial<ServiceError>;
  return etcdError(code ?? GrpcCode.unknown, details ?? reasonOf(caught), caught);
}

function codecsOf<Req, Res>({ request, response }: Method<Req, Res>): [(value: Req) => Buffer, (bytes: Buffer) => Res] {
  return [(value) => Buffer.from(request.encode(value)), (bytes) => response.decode(bytes)];
}
