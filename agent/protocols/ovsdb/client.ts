import { pause } from "../../../shared/async/abortable.ts";
import { Backoff } from "../../../shared/async/backoff.ts";
import { withTimeout } from "../../../shared/async/with-timeout.ts";
import { reasonOf } from "../../../shared/reason.ts";
import { Connection } from "./connection.ts";
import { MonitorSession } from "./monitor.ts";
import { OvsdbCode, OvsdbError } from "./ovsdb-error.ts";
import { readAnswer, requireSteps, type Transaction, type TransactionOutcome } from "./transaction.ts";
import { type OpenStream, type OvsdbAddress, openStream, parseAddress } from "./transport.ts";
import {
  type Monitored,
  type RowChange,
  RowWaits,
  View,
  type WaitBounds,
  type WatchedRow,
  type WatchedTable,
} from "./view.ts";

/** A transaction is answered within milliseconds, or when the disk has it; the caller may give another bound. */
export const requestTimeoutMs = 10_000;

const usualTiming = {
  /** A local server takes a connection at once; one over TCP in a round trip. */
  connectMs: 5_000,
  requestMs: requestTimeoutMs,
  /** Silence after which the server is asked for an echo, and again as long for the echo to come. */
  probeMs: 5_000,
  /** Between two attempts to connect: doubles from the first to the second. A server that starts again takes 100 ms. */
  retryFirstMs: 50,
  retryMostMs: 1_000,
} as const;

/** Connecting and asking for the state; working; or pausing until the next attempt; and the end of it all. */
export type OvsdbState =
  | { readonly t: "connecting" }
  | { readonly t: "ready" }
  | { readonly t: "pausing"; readonly reason: string }
  | { readonly t: "closed" };

export interface OvsdbOptions<M extends Monitored> {
  /** As `parseAddress` takes it. */
  readonly address: string;
  readonly monitored: M;
  readonly database?: string;
  readonly timing?: Partial<Record<keyof typeof usualTiming, number>>;
  readonly open?: OpenStream;
}

/**
 * A lasting client: it connects, monitors the tables, and reconnects with growing pauses whenever the connection ends.
 * Requests made meanwhile wait for the next connection until their deadline. Keeps the process alive until it is
 * disposed of.
 */
export class OvsdbClient<M extends Monitored> implements Disposable {
  readonly view: View<M>;
  /** What is watched. */
  readonly monitored: M;
  readonly #address: OvsdbAddress;
  readonly #addressText: string;
  readonly #database: string;
  readonly #open: OpenStream;
  readonly #timing: Required<NonNullable<OvsdbOptions<M>["timing"]>>;
  readonly #waits = new RowWaits();
  readonly #stateListeners = new Set<(state: OvsdbState) => void>();
  readonly #changeListeners = new Set<(changes: readonly RowChange[]) => void>();
  readonly #closing = new AbortController();
  #state: OvsdbState = { t: "connecting" };
  #connection: Connection | undefined;
  #lastReason = "";

  /** Begins to connect. @throws {OvsdbError} `invalid` for the address */
  constructor({ address, monitored, database = "Open_vSwitch", timing = {}, open = openStream }: OvsdbOptions<M>) {
    this.#address = parseAddress(address);
    this.#addressText = address;
    this.#database = database;
    this.#open = open;
    this.#timing = { ...usualTiming, ...timing };
    this.monitored = monitored;
    this.view = new View(monitored);
    void this.#run();
  }

  get state(): OvsdbState {
    return this.#state;
  }

  /** Until a connection stands and the view is current. @throws {OvsdbError} `unreachable` */
  async ready(timeoutMs: number = this.#timing.requestMs): Promise<void> {
    await this.#connected(timeoutMs, "use the database");
  }

  /**
   * Carries a transaction out as a whole or not at all. If an error's `mayHaveHappened` is set, the outcome is unknown.
   * @throws {OvsdbError}
   */
  async transact(transaction: Transaction, timeoutMs: number = this.#timing.requestMs): Promise<TransactionOutcome> {
    requireSteps(transaction);
    const result = await this.#ask("transact", transaction.params(this.#database), timeoutMs, transaction.action);
    return readAnswer(transaction, result);
  }

  /**
   * The first row of a table that satisfies the predicate, now or later. A view from before a connection loss is not
   * used.
   * @throws {OvsdbError} `not seen`, `closed`
   */
  waitForRow<T extends WatchedTable<M>>(
    table: T,
    predicate: (row: WatchedRow<M, T>) => boolean,
    bounds: WaitBounds,
  ): Promise<WatchedRow<M, T>> {
    type Row = WatchedRow<M, T>;
    const look = (changes: readonly RowChange[] | undefined): Row | undefined => {
      if (changes === undefined) return this.view.rows(table).values().find(predicate);
      for (const { table: changed, after } of changes) {
        if (changed === table && after !== undefined && predicate(after as unknown as Row))
          return after as unknown as Row;
      }
      return undefined;
    };
    if (this.#state.t === "closed") return Promise.reject(this.#closed(bounds.action));
    return this.#waits.add(look, this.view.isCurrent, bounds);
  }

  /** Each call has the changes of one transaction, after the view has them; after a reconnection, what is different. */
  onChanges(listener: (changes: readonly RowChange[]) => void): Disposable {
    return subscribe(this.#changeListeners, listener);
  }

  onState(listener: (state: OvsdbState) => void): Disposable {
    return subscribe(this.#stateListeners, listener);
  }

  /** Ends the connection; everything that waits fails with `closed`. */
  [Symbol.dispose](): void {
    if (this.#state.t === "closed") return;
    this.#setState({ t: "closed" });
    this.#connection?.[Symbol.dispose]();
    this.#waits.failAll((action) => this.#closed(action));
    this.#closing.abort();
  }

  async #ask(method: string, params: readonly unknown[], timeoutMs: number, action: string): Promise<unknown> {
    const until = performance.now() + timeoutMs;
    const connection = this.#readyConnection ?? (await this.#connected(timeoutMs, action));
    return connection.ask(method, params, Math.max(1, until - performance.now()), action);
  }

  get #readyConnection(): Connection | undefined {
    return this.#state.t === "ready" ? this.#connection : undefined;
  }

  async #connected(timeoutMs: number, action: string): Promise<Connection> {
    if (this.#state.t === "closed") throw this.#closed(action);
    if (this.#readyConnection !== undefined) return this.#readyConnection;
    const { promise, resolve, reject } = Promise.withResolvers<Connection>();
    using _ = this.onState(() => {
      if (this.#readyConnection !== undefined) resolve(this.#readyConnection);
      else if (this.#state.t === "closed") reject(this.#closed(action));
    });
    return await withTimeout(promise, timeoutMs, () => {
      const why = this.#lastReason === "" ? "" : ` (${this.#lastReason})`;
      const is = `there is no connection to "${this.#addressText}"${why}, wanted one within ${timeoutMs} ms`;
      throw new OvsdbError(OvsdbCode.unreachable, `Cannot ${action}: ${is}`);
    });
  }

  async #run(): Promise<void> {
    const { retryFirstMs, retryMostMs } = this.#timing;
    const backoff = new Backoff({ firstMs: retryFirstMs, longestMs: retryMostMs });
    while (this.#state.t !== "closed") {
      this.#setState({ t: "connecting" });
      const began = performance.now();
      const wasReady = await this.#useConnection();
      if (this.#isClosed()) return;
      // A server that accepts connections and closes them at once counts as away.
      if (wasReady && performance.now() - began > retryMostMs) backoff.reset();
      await pause(backoff.next(), this.#closing.signal);
    }
  }

  /** Uses one connection until it ends. Answers whether it worked. */
  async #useConnection(): Promise<boolean> {
    let wasReady = false;
    const session = new MonitorSession(this.#database, this.monitored, {
      known: (table, uuid) => this.view.rows(table as WatchedTable<M>).get(uuid),
      state: (rows) => {
        const changes = this.view.replace(rows);
        wasReady = true;
        this.#setState({ t: "ready" });
        this.#tell(changes, undefined);
      },
      changes: (changes) => {
        this.view.apply(changes);
        this.#tell(changes, changes);
      },
    });
    const { connectMs, probeMs, requestMs } = this.#timing;
    try {
      using connection = await Connection.open({
        address: this.#address,
        open: this.#open,
        notify: (method, params) => session.notify(method, params),
        ended: (reason) => this.#lost(reason),
        connectMs,
        probeMs,
      });
      if (this.#isClosed()) return false;
      this.#connection = connection;
      session.start(connection, requestMs);
      await connection.over;
    } catch (caught) {
      this.#lost(reasonOf(caught));
    }
    return wasReady;
  }

  /** Called when the connection is lost, before waiting requests fail, because their callers may retry at once. */
  #lost(reason: string): void {
    this.view.outdate();
    this.#connection = undefined;
    this.#lastReason = reason;
    // A connection that broke while it was being made is reported twice.
    if (this.#state.t === "connecting" || this.#state.t === "ready") this.#setState({ t: "pausing", reason });
  }

  #tell(changes: readonly RowChange[], lookAt: readonly RowChange[] | undefined): void {
    this.#waits.look(lookAt);
    if (changes.length > 0) callAll(this.#changeListeners, changes);
  }

  #setState(state: OvsdbState): void {
    this.#state = state;
    callAll(this.#stateListeners, state);
  }

  // A function, because the state changes while others wait.
  #isClosed(): boolean {
    return this.#state.t === "closed";
  }

  #closed(action: string): OvsdbError {
    const is = `the client of "${this.#addressText}" is closed`;
    return new OvsdbError(OvsdbCode.closed, `Cannot ${action}: ${is}`);
  }
}

function subscribe<T>(listeners: Set<T>, listener: T): Disposable {
  listeners.add(listener);
  return { [Symbol.dispose]: () => void listeners.delete(listener) };
}

/** If a listener throws, the others are still called, and the connection is not affected. */
function callAll<T>(listeners: ReadonlySet<(value: T) => void>, value: T): void {
  for (const listener of [...listeners]) {
    try {
      listener(value);
    } catch (caught) {
      queueMicrotask(() => {
        throw caught;
      });
    }
  }
}
