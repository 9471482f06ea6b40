import { retry } from "../../../shared/async/backoff.ts";
import type { Method } from "../../../shared/proto/services.ts";
import { type Endpoint, EtcdConnection } from "./connection.ts";
import { cniErrorOf, EtcdError } from "./etcd-error.ts";
import { etcdLimits } from "./etcd-limits.ts";
import {
  type Compare,
  etcdMethods,
  type KeyValue,
  type RangeRequest,
  type RangeResponse,
  type RequestOp,
  type TxnResponse,
} from "./messages.ts";

export interface Transaction {
  readonly when?: readonly Compare[];
  readonly run: readonly RequestOp[];
  readonly otherwise?: readonly RequestOp[];
}

export interface TransactionAnswer {
  readonly succeeded: boolean;
  readonly revision: number;
  /** What each `get` of the branch that was taken has found; empty for other operations. */
  readonly found: readonly (readonly KeyValue[])[];
}

/**
 * A client of a cluster: each call makes one attempt at one member, and after a failed one the next call uses another
 * member. Retries are the caller's (`retried`), because it has to check first whether the last attempt was carried out.
 */
export class EtcdClient implements Disposable {
  /** For messages: `the etcd registry at …`. */
  readonly name: string;
  readonly endpoints: readonly Endpoint[];
  /** Bound of a call with all its tries. */
  readonly callMs: number;
  readonly #connections: (EtcdConnection | undefined)[];
  readonly #closed = new AbortController();
  #at: number;

  constructor(endpoints: readonly Endpoint[], callMs: number = etcdLimits.callMs) {
    this.callMs = callMs;
    this.endpoints = endpoints;
    this.name = `the etcd registry at ${endpoints.map(({ url }) => url).join(", ")}`;
    this.#connections = endpoints.map(() => undefined);
    // Random, so that many nodes spread over the members.
    this.#at = Math.floor(Math.random() * endpoints.length);
  }

  /** Aborted with the client's end, for what uses it in the background. */
  get closed(): AbortSignal {
    return this.#closed.signal;
  }

  /** @throws {EtcdError} */
  range(request: RangeRequest): Promise<RangeResponse> {
    return this.call(etcdMethods.range, request);
  }

  /** @throws {EtcdError} */
  async txn({ when = [], run, otherwise = [] }: Transaction): Promise<TransactionAnswer> {
    const request = { compare: when, success: run, failure: otherwise };
    const answer: TxnResponse = await this.call(etcdMethods.txn, request);
    const found = answer.responses.map(({ range }) => range?.kvs ?? []);
    return { succeeded: answer.succeeded, revision: answer.header?.revision ?? 0, found };
  }

  /** @throws {EtcdError} */
  async call<Req, Res>(method: Method<Req, Res>, request: Req, timeoutMs: number = this.#tryMs): Promise<Res> {
    if (this.closed.aborted) throw new EtcdError("refused", "the client is closed");
    const endpoint = this.endpoint;
    try {
      return await this.#connection(this.#at).call(method, request, timeoutMs);
    } catch (caught) {
      if (caught instanceof EtcdError && caught.passing) this.moveOn(endpoint);
      throw caught;
    }
  }

  /** The member that the next call goes to. */
  get endpoint(): Endpoint {
    const endpoint = this.endpoints[this.#at];
    if (endpoint === undefined) throw new Error(`Broken invariant: there is no endpoint ${this.#at}`);
    return endpoint;
  }

  /** Moves to the next member, unless another failed call has already left `from`. */
  moveOn(from: Endpoint): void {
    if (from === this.endpoint) this.#at = (this.#at + 1) % this.endpoints.length;
  }

  /** Ends the calls that run; there are no others afterwards. */
  [Symbol.dispose](): void {
    this.#closed.abort();
    for (const connection of this.#connections) connection?.[Symbol.dispose]();
  }

  get #tryMs(): number {
    return Math.min(this.callMs, this.endpoints.length > 1 ? etcdLimits.tryMs : etcdLimits.onlyTryMs);
  }

  #connection(at: number): EtcdConnection {
    this.#connections[at] ??= new EtcdConnection(this.endpoint);
    return this.#connections[at];
  }
}

/**
 * Repeats an attempt, within the client's `callMs`, while members cannot be reached or their answer is lost. So each
 * attempt has to begin by checking what an earlier one has done.
 * @param action for the error: `register node "a"`
 * @throws {CniError}
 */
export async function retried<T>(client: EtcdClient, action: string, attempt: () => Promise<T>): Promise<T> {
  const untilMs = performance.now() + client.callMs;
  return await retry(attempt, {
    firstMs: etcdLimits.retryFirstMs,
    longestMs: etcdLimits.retryMostMs,
    jitter: 1,
    // A client that is closed answers so to the next attempt.
    signal: new AbortController().signal,
    failed: (caught, pauseMs) => {
      const isPassing = caught instanceof EtcdError && caught.passing;
      if (!isPassing || performance.now() + pauseMs > untilMs) throw cniErrorOf(caught, action, client);
    },
  });
}
