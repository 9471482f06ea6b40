import { JsonRpc, type Notify, type Reply } from "./json-rpc.ts";
import { OvsdbCode, OvsdbError, serverError } from "./ovsdb-error.ts";
import type { ByteStream, OpenStream, OvsdbAddress } from "./transport.ts";

/** The outcome of a request: as `Reply`, no answer in time, or not sent because the connection has ended or is full. */
export type Outcome =
  | Reply
  | { readonly t: "late" }
  | { readonly t: "unsent"; readonly reason: string }
  | { readonly t: "full" };

export interface ConnectionOptions {
  readonly address: OvsdbAddress;
  readonly open: OpenStream;
  readonly notify: Notify;
  readonly connectMs: number;
  readonly probeMs: number;
  /** Told once, before anybody else hears of the end. */
  readonly ended: (reason: string) => void;
}

/** One connection: requests with deadlines, and probes whether the server is alive. */
export class Connection implements Disposable {
  /** Resolves when it is over. */
  readonly over: Promise<void>;
  readonly #rpc: JsonRpc;
  readonly #ended: (reason: string) => void;
  readonly #resolveOver: () => void;
  #stream: ByteStream | undefined;
  #probing: ReturnType<typeof setInterval> | undefined;
  #heard = true;
  #isClosed = false;

  private constructor(notify: Notify, ended: (reason: string) => void) {
    this.#rpc = new JsonRpc(notify);
    const { promise, resolve } = Promise.withResolvers<void>();
    this.over = promise;
    this.#ended = ended;
    this.#resolveOver = resolve;
  }

  /** @throws {Error} where there is nobody to connect to; its message continues a sentence */
  static async open(options: ConnectionOptions): Promise<Connection> {
    const { address, open, notify, ended, connectMs, probeMs } = options;
    const connection = new Connection(notify, ended);
    const events = {
      data: (chunk: Uint8Array) => connection.#receive(chunk),
      drain: () => connection.#flush(),
      closed: (reason: string) => connection.close(reason),
    };
    connection.#stream = await open(address, events, connectMs);
    // It may have come and gone by now.
    if (connection.#isClosed) connection.#stream.close();
    else connection.#probing = setInterval(() => connection.#probe(probeMs), probeMs);
    return connection;
  }

  /** `settle` is called once, at the latest when the time is over; never before this returns. */
  request(method: string, params: readonly unknown[], timeoutMs: number, settle: (outcome: Outcome) => void): void {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const id = this.#rpc.request(method, params, (reply) => {
      clearTimeout(timer);
      settle(reply);
    });
    if (id === undefined) {
      const reason = this.#rpc.fault;
      queueMicrotask(() => settle(reason === undefined ? { t: "full" } : { t: "unsent", reason }));
      return;
    }
    timer = setTimeout(() => {
      this.#rpc.cancel(id);
      this.#flush();
      settle({ t: "late" });
    }, timeoutMs);
    queueMicrotask(() => this.#flush());
  }

  /**
   * The same with a promise of the result.
   * @param action continues "Cannot …"
   * @throws {OvsdbError} for any other outcome
   */
  ask(method: string, params: readonly unknown[], timeoutMs: number, action: string): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.request(method, params, timeoutMs, (outcome) => {
        if (outcome.t === "result") resolve(outcome.result);
        else reject(failure(action, outcome, timeoutMs));
      });
    });
  }

  close(reason: string): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    clearInterval(this.#probing);
    this.#stream?.close();
    this.#ended(this.#rpc.fault ?? reason);
    this.#rpc.end(reason);
    this.#resolveOver();
  }

  [Symbol.dispose](): void {
    this.close("this client has closed the connection");
  }

  #receive(chunk: Uint8Array): void {
    this.#heard = true;
    this.#rpc.receive(chunk);
    this.#flush();
    if (this.#rpc.fault !== undefined) this.close(this.#rpc.fault);
  }

  #flush(): void {
    const stream = this.#stream;
    if (stream === undefined) return;
    for (let front = this.#rpc.front(); front.length > 0; front = this.#rpc.front()) {
      const written = stream.write(front);
      if (written > 0) this.#rpc.wrote(written);
      if (written < front.length) return;
    }
  }

  /** RFC 7047, section 4.1.11. A server that has vanished with its machine closes nothing. */
  #probe(probeMs: number): void {
    const heard = this.#heard;
    this.#heard = false;
    if (heard) return;
    this.request("echo", [], probeMs, ({ t }) => {
      if (t === "late") this.close(`the server has said nothing for ${2 * probeMs} ms`);
    });
  }
}

type Failed = Exclude<Outcome, { t: "result" }>;

function failure(action: string, outcome: Failed, timeoutMs: number): OvsdbError {
  switch (outcome.t) {
    case "error": {
      const { code, text } = serverError(outcome.error);
      return new OvsdbError(code, `Cannot ${action}: the server answers ${text}`);
    }
    case "gone":
      return new OvsdbError(OvsdbCode.disconnected, `Cannot ${action}: ${outcome.reason} before the answer`);
    case "unsent":
      return new OvsdbError(OvsdbCode.unreachable, `Cannot ${action}: the connection has ended (${outcome.reason})`);
    case "late":
      return new OvsdbError(
        OvsdbCode.late,
        `Cannot ${action}: no answer came, wanted one within ${Math.round(timeoutMs)} ms`,
      );
    case "full":
      return new OvsdbError(OvsdbCode.invalid, `Cannot ${action}: the request is too long or too many wait`);
  }
}
