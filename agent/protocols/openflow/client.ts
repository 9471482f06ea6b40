import { reasonOf } from "../../../shared/reason.ts";
import { checkBundled } from "./bundle.ts";
import { type ConnectionEvent, OpenFlowConnection } from "./connection.ts";
import { MessageType } from "./constants.ts";
import { BatchExchange, MultipartExchange, SingleExchange } from "./exchange.ts";
import { watchFlowsRequest } from "./flow-monitor.ts";
import { type FlowFilter, flowsRequest, type InstalledFlow } from "./flow-wire.ts";
import { groupsRequest, type OpenFlowGroup } from "./group.ts";
import type { Features } from "./message.ts";
import { maxMetersRequest, metersRequest, type OpenFlowMeter } from "./meter.ts";
import { OpenFlowError } from "./openflow-error.ts";
import { type MultipartRequest, multipartMessage, type Request } from "./request.ts";
import {
  addressText,
  type Connect,
  connectTransport,
  type OpenFlowAddress,
  requireTrusted,
  type Transport,
} from "./transport.ts";

/** A switch on the same machine answers within milliseconds, and within seconds where the machine is overloaded. */
const requestTimeoutMs = 10_000;
/** Connecting and HELLO: as above. */
const connectTimeoutMs = 5_000;
/**
 * So often it is tried to greet a switch that takes the connection: Open vSwitch ends one on which it was not greeted
 * within a second (`timeout_CONNECTING` in its `lib/rconn.c`), and a busy machine holds this process up for longer.
 */
const greetings = 3;
/** Silence after which an echo is asked for; it ends the connection when it is not answered in `requestTimeoutMs`. */
const idleTimeoutMs = 15_000;

export interface ClientOptions {
  /**
   * Called with the switch's asynchronous messages, in order, once they were requested (`forwardRequests`,
   * `watchFlows`).
   */
  onEvent?(event: ConnectionEvent): void;
  readonly connectMs?: number;
  readonly requestMs?: number;
  /** Silence after which the switch is asked whether it is there. */
  readonly idleMs?: number;
  /** For tests. */
  readonly connect?: Connect;
}

const barrier: Request = { action: "wait for the switch", type: MessageType.BARRIER_REQUEST, body: () => undefined };

/**
 * One connection to one bridge. Every request ends: by its answer, an error, a timeout, or with the connection. The
 * connection is not opened again: `closed` tells the owner, which knows what a restarted switch needs.
 */
export class OpenFlowClient implements Disposable {
  /** Resolves when the connection has ended, with the reason. */
  readonly closed: Promise<OpenFlowError>;
  readonly #connection: OpenFlowConnection;
  readonly #transport: Transport;
  readonly #options: Required<Pick<ClientOptions, "requestMs" | "idleMs">>;
  readonly #opened = Promise.withResolvers<void>();
  readonly #ended = Promise.withResolvers<OpenFlowError>();
  /** The switch had taken the connection, and ended it. */
  #wasCutOff = false;
  #hasRoom = false;
  #flushing = false;
  #heardAt = performance.now();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #timerAt = Number.POSITIVE_INFINITY;
  #probing = false;

  /** Connects and agrees on a version. @throws {OpenFlowError} */
  static async connect(address: OpenFlowAddress, options: ClientOptions = {}): Promise<OpenFlowClient> {
    try {
      await requireTrusted(address);
    } catch (caught) {
      throw new OpenFlowError("lost", `connect to "${addressText(address)}"`, reasonOf(caught));
    }
    const limit = options.connectMs ?? connectTimeoutMs;
    const untilMs = performance.now() + limit;
    for (let left = greetings - 1; ; left--) {
      const client = new OpenFlowClient(address, options);
      try {
        await client.#greeted(Math.max(1, untilMs - performance.now()), limit);
        return client;
      } catch (caught) {
        if (left === 0 || !client.#wasCutOff) throw caught;
      }
    }
  }

  /** @param limit in milliseconds, of all attempts; the error says it */
  async #greeted(leftMs: number, limit: number): Promise<void> {
    const timer = setTimeout(
      () => this.#close(new OpenFlowError("late", this.#connecting, `nothing came for ${limit} ms, wanted HELLO`)),
      leftMs,
    );
    try {
      await this.#opened.promise;
    } finally {
      clearTimeout(timer);
    }
  }

  readonly #connecting: string;

  private constructor(address: OpenFlowAddress, options: ClientOptions) {
    this.#connecting = `connect to "${addressText(address)}"`;
    this.#options = {
      requestMs: options.requestMs ?? requestTimeoutMs,
      idleMs: options.idleMs ?? idleTimeoutMs,
    };
    this.closed = this.#ended.promise;
    this.#opened.promise.catch(() => undefined);
    this.#connection = new OpenFlowConnection({
      onEvent: (event) => {
        try {
          options.onEvent?.(event);
        } catch (caught) {
          // An error of the owner's callback must not stop the reading of later messages; it is thrown separately.
          queueMicrotask(() => {
            throw caught;
          });
        }
      },
      wake: () => this.#wake(),
    });
    this.#transport = (options.connect ?? connectTransport)(address, {
      opened: () => this.#drained(),
      received: (chunk) => this.#received(chunk),
      drained: () => this.#drained(),
      ended: (reason, wasTaken) => {
        this.#wasCutOff = wasTaken;
        const is = reason === "" ? "the switch closed the connection" : reason;
        const action = this.#connection.state.t === "open" ? "go on with the switch" : this.#connecting;
        this.#close(new OpenFlowError("lost", action, is));
      },
    });
  }

  get features(): Features {
    const { state } = this.#connection;
    if (state.t === "open") return state.features;
    throw state.t === "closed" ? state.error : new OpenFlowError("lost", this.#connecting, "it is not open yet");
  }

  /** Carries out requests in order, each for itself, and answers when all are done, with those that were refused. @throws {OpenFlowError} */
  async run(requests: readonly Request[], timeoutMs?: number): Promise<readonly OpenFlowError[]> {
    return this.#ask<readonly OpenFlowError[]>(timeoutMs, (waiting, deadline) => {
      this.#connection.start(new BatchExchange(requests, waiting), [...requests, barrier], deadline);
    });
  }

  /** As `run` for one request. @throws {OpenFlowError} also where it is refused */
  async do(request: Request, timeoutMs?: number): Promise<void> {
    const [refusal] = await this.run([request], timeoutMs);
    if (refusal !== undefined) throw refusal;
  }

  /**
   * Changes flows and groups all at once or not at all; packets see the state before or the one after.
   * @throws {OpenFlowError} that names the first one that was refused; nothing has changed then
   */
  async bundle(requests: readonly Request[], timeoutMs?: number): Promise<void> {
    checkBundled(requests);
    return this.#ask<void>(timeoutMs, (waiting, deadline) => this.#connection.startBundle(requests, deadline, waiting));
  }

  /** Sends one without waiting for it, such as a packet; a refusal is an event. @throws {OpenFlowError} */
  post(request: Request): void {
    this.#connection.post(request);
  }

  /** Asks for a list. @throws {OpenFlowError} */
  async list<T>(request: MultipartRequest<T>, timeoutMs?: number): Promise<readonly T[]> {
    return this.#ask<readonly T[]>(timeoutMs, (waiting, deadline) => {
      const exchange = new MultipartExchange<T>(request, waiting);
      this.#connection.start(exchange, [multipartMessage(request)], deadline);
    });
  }

  flows(filter?: FlowFilter): Promise<readonly InstalledFlow[]> {
    return this.list(flowsRequest(filter));
  }

  /** Asks to be told of each flow that comes, changes or goes, by `onEvent`. @throws {OpenFlowError} where the switch does not know that */
  async watchFlows(): Promise<void> {
    await this.list(watchFlowsRequest());
  }

  groups(): Promise<readonly OpenFlowGroup[]> {
    return this.list(groupsRequest());
  }

  async meters(): Promise<readonly OpenFlowMeter[]> {
    return (await this.list(metersRequest())).filter((meter) => meter !== undefined);
  }

  async maxMeters(): Promise<number> {
    const [max = 0] = await this.list(maxMetersRequest());
    return max;
  }

  /** Whether the switch answers. @throws {OpenFlowError} */
  async echo(timeoutMs?: number): Promise<void> {
    const request: Request = {
      action: "hear from the switch",
      type: MessageType.ECHO_REQUEST,
      body: () => undefined,
    };
    await this.#ask<true>(timeoutMs, (waiting, deadline) => {
      const exchange = new SingleExchange(
        request.action,
        (message) => (message.t === "echo-reply" ? true : undefined),
        waiting,
      );
      this.#connection.start(exchange, [request], deadline);
    });
  }

  [Symbol.dispose](): void {
    this.#close(new OpenFlowError("lost", "go on with the switch", "the connection was closed from this side"));
  }

  #ask<T>(
    timeoutMs: number | undefined,
    start: (waiting: { resolve(value: T): void; reject(reason: OpenFlowError): void }, deadline: number) => void,
  ): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const deadline = performance.now() + (timeoutMs ?? this.#options.requestMs);
    start({ resolve, reject }, deadline);
    this.#schedule(deadline);
    return promise;
  }

  #received(chunk: Uint8Array): void {
    this.#heardAt = performance.now();
    this.#connection.receive(chunk);
  }

  #drained(): void {
    this.#hasRoom = true;
    this.#flush();
  }

  /** Requests of one turn of the event loop are sent together. */
  #wake(): void {
    const { state } = this.#connection;
    if (state.t === "closed") this.#finish(state.error);
    else if (state.t === "open") {
      this.#opened.resolve();
      this.#schedule(this.#heardAt + this.#options.idleMs);
    }
    if (this.#flushing || !this.#hasRoom) return;
    this.#flushing = true;
    queueMicrotask(() => {
      this.#flushing = false;
      this.#flush();
    });
  }

  #flush(): void {
    while (this.#hasRoom && this.#connection.waiting > 0)
      this.#hasRoom = this.#transport.write(this.#connection.take());
  }

  #schedule(at: number): void {
    if (at >= this.#timerAt || this.#connection.state.t === "closed") return;
    clearTimeout(this.#timer);
    this.#timerAt = at;
    this.#timer = setTimeout(() => this.#onTimer(), Math.max(0, at - performance.now()));
    // A connection alone does not keep a process alive; its socket does.
    this.#timer.unref();
  }

  #onTimer(): void {
    this.#timerAt = Number.POSITIVE_INFINITY;
    const now = performance.now();
    const next = this.#connection.expire(now);
    if (now - this.#heardAt >= this.#options.idleMs) this.#probe();
    if (next !== undefined) this.#schedule(next);
    this.#schedule(Math.max(this.#heardAt, now - this.#options.idleMs / 2) + this.#options.idleMs);
  }

  #probe(): void {
    if (this.#probing) return;
    this.#probing = true;
    this.echo()
      .catch((error: OpenFlowError) => {
        if (error.kind === "late") this.#close(error);
      })
      .finally(() => {
        this.#probing = false;
      });
  }

  #close(error: OpenFlowError): void {
    this.#connection.close(error);
  }

  #finish(error: OpenFlowError): void {
    clearTimeout(this.#timer);
    this.#transport.close();
    this.#opened.reject(error);
    this.#ended.resolve(error);
  }
}
