import {
  type Client,
  type ClientDuplexStream,
  type ClientUnaryCall,
  Metadata,
  makeGenericClientConstructor,
  type ServiceError,
} from "@grpc/grpc-js";
import type { Method } from "../../../shared/proto/services.ts";
import { reasonOf } from "../../../shared/reason.ts";
import { GrpcCode } from "../../../shared/rpc/rpc-error.ts";
import { channelOptions, type Endpoint } from "./endpoint.ts";
import { etcdError } from "./etcd-error.ts";
import { watchMethod } from "./methods.ts";
import type { WatchRequest, WatchResponse } from "./watch-messages.ts";

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

  /** A stream of watches, without a deadline: whoever opens it looks after it. Its errors go through `errorOf`. */
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

/** A member that has lost the others says so at once, rather than hold calls and serve a watch to which nothing comes. */
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
