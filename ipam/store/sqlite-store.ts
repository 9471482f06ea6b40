import type { DatabaseSync, SQLInputValue, StatementSync } from "node:sqlite";
import { assert } from "../../shared/assert.ts";
import type { Owner } from "../../shared/cni/types.ts";
import { CniError } from "../../shared/errors.ts";
import type { Ip } from "../../shared/net/ip.ts";
import type { Lease, LeaseState } from "../lease.ts";
import {
  type AddressKey,
  distance,
  ipOfKey,
  ipOfNumber,
  keyBefore,
  keyBehind,
  keyOf,
  keyOfNumber,
  lastNumber,
  numberOfKey,
} from "./address-key.ts";
import { columnsOf, keyColumns, type LeaseRow, leaseOf } from "./lease-row.ts";
import { isDamage, storeError } from "./sqlite-errors.ts";
import {
  checkpoint,
  closeDatabase,
  deferCheckpoints,
  openOrCreateDatabase,
  openOwnDatabase,
  retryFailed,
} from "./sqlite-open.ts";
import {
  type AdjacentRow,
  addLease,
  adjacentRuns,
  changeLease,
  cooled,
  longestCooling,
  ownersLeases,
  type RunAround,
  type RunRow,
  runAround,
} from "./statement-texts.ts";
import {
  type LeaseQuery,
  type PodPlace,
  refuseAsync,
  refusePromise,
  type Store,
  type Synchronous,
  type TakenCount,
} from "./store.ts";

const lowest = keyOfNumber(0n);
const highest = keyOfNumber(lastNumber);

/** Leases of a window that are looked through in some milliseconds, whatever else the network has. */
const smallWindow = 1n << 18n;

export interface SqliteOptions {
  /** Called at the first use that shows damage, and at each one after it. */
  readonly onDamage?: ((error: CniError) => void) | undefined;
  /** The caller calls `checkpoint` now and then, so that no transaction waits for the disk. */
  readonly defersCheckpoints?: boolean | undefined;
}

/** Leases in one SQLite file, shared by every process that opens it. */
export class SqliteStore implements Store {
  readonly #db: DatabaseSync;
  readonly #path: string;
  readonly #onDamage: ((error: CniError) => void) | undefined;
  readonly #statements = new Map<string, StatementSync>();
  #inTransaction = false;
  #closed = false;

  private constructor(db: DatabaseSync, path: string, { onDamage, defersCheckpoints = false }: SqliteOptions = {}) {
    if (defersCheckpoints) deferCheckpoints(db);
    this.#db = db;
    this.#path = path;
    this.#onDamage = onDamage;
  }

  /** Makes the file and its directory when missing. */
  static async open(path: string, directory: string, options?: SqliteOptions): Promise<SqliteStore> {
    return new SqliteStore(await openOrCreateDatabase(path, directory), path, options);
  }

  /** `undefined` where there is no file. */
  static async openExisting(path: string, directory: string): Promise<SqliteStore | undefined> {
    const db = await openOwnDatabase(path, directory);
    return db === undefined ? undefined : new SqliteStore(db, path);
  }

  transaction<T>(work: () => Synchronous<T>): T {
    refuseAsync(work);
    assert(!this.#inTransaction, "transactions do not nest");
    // IMMEDIATE takes the writer's lock now: a lock that is taken later could find its reads outdated, and fail.
    this.#run("BEGIN IMMEDIATE");
    this.#inTransaction = true;
    try {
      const value = refusePromise(work());
      this.#run("COMMIT");
      return value;
    } catch (caught) {
      this.#rollBack();
      throw caught;
    } finally {
      this.#inTransaction = false;
    }
  }

  /** SQLite has rolled back by itself after some errors, a full disk among them; then there is nothing to do. */
  #rollBack(): void {
    try {
      this.#db.exec("ROLLBACK");
    } catch {
      // The error that led here tells more.
    }
  }

  select(query: LeaseQuery): readonly Lease[] {
    return this.#rows(query).map(leaseOf);
  }

  /**
   * The planner knows nothing of how many leases there are and would rather walk them all in order: indexes are named.
   *
   * Where a statement has an order or groups, SQLite looks at the value behind `column = ?`, and in any at that of `LIMIT ?`, and
   * compiles the statement anew for each: ten times the price of the look-up. It does not with `IN (?)` and a number.
   */
  #rows(query: LeaseQuery): readonly LeaseRow[] {
    const by = (where: string, ...values: SQLInputValue[]): readonly LeaseRow[] =>
      this.#all<LeaseRow>(`SELECT * FROM lease ${where}`, ...values);
    switch (query.by) {
      case "owner": {
        const { network, sandboxId, ifname } = query.owner;
        return this.#all<LeaseRow>(ownersLeases, network, sandboxId, ifname);
      }
      case "address":
        return by("WHERE network = ? AND address = ?", query.network, keyOf(query.ip));
      case "window":
        return by(
          `WHERE network IN (?) AND address BETWEEN ? AND ? ORDER BY address LIMIT ${query.limit}`,
          query.network,
          keyOf(query.from),
          keyOf(query.to),
        );
      case "network":
        return query.network === undefined
          ? by("ORDER BY network, address")
          : by("WHERE network IN (?) ORDER BY address", query.network);
      case "page":
        return by(
          `WHERE (network, address) > (?, ?) ORDER BY network, address LIMIT ${query.limit}`,
          query.after.network,
          keyOf(query.after.ip),
        );
      case "cooling":
        if (query.within !== undefined && query.within.to.value - query.within.from.value < smallWindow)
          return by(
            `INDEXED BY sqlite_autoindex_lease_1 WHERE network IN (?) AND address BETWEEN ? AND ? AND state = 'cooling' AND released_at_ms <= ? ORDER BY released_at_ms, generation LIMIT ${query.limit}`,
            query.network,
            keyOf(query.within.from),
            keyOf(query.within.to),
            query.releasedByMs,
          );
        return this.#all<LeaseRow>(
          longestCooling(query.limit),
          query.network,
          query.releasedByMs,
          query.within === undefined ? lowest : keyOf(query.within.from),
          query.within === undefined ? highest : keyOf(query.within.to),
        );
      case "cooled":
        return this.#all<LeaseRow>(cooled(query.limit), query.network, query.releasedByMs);
    }
  }

  holds({ owner: { network }, address: { ip }, generation }: Lease): boolean {
    const sql = "SELECT 1 FROM lease WHERE network = ? AND address = ? AND generation = ? AND state = 'allocated'";
    return this.#row(sql, network, keyOf(ip), generation) !== undefined;
  }

  put(lease: Lease): void {
    assert(this.#inTransaction, "leases change inside a transaction");
    const { network } = lease.owner;
    const key = keyOf(lease.address.ip);
    const columns = columnsOf(lease, key);
    if (this.#use(addLease, columns, changesOf) > 0) this.#take(network, key);
    else this.#changes(changeLease, ...columns.slice(keyColumns), network, key);
  }

  remove(lease: Lease): void {
    assert(this.#inTransaction, "leases change inside a transaction");
    const { network } = lease.owner;
    const key = keyOf(lease.address.ip);
    const removed = this.#changes("DELETE FROM lease WHERE network = ? AND address = ?", network, key);
    if (removed > 0) this.#give(network, key);
  }

  nextFree(network: string, from: Ip): Ip {
    const run = this.#runAround(network, keyOf(from));
    return run?.covers === 1 ? ipOfNumber(from.family, numberOfKey(run.last) + 1n) : from;
  }

  count(network: string, from: Ip, to: Ip, cooledByMs: number): TakenCount {
    const taken = this.#taken(network, keyOf(from), keyOf(to));
    const left = this.#all<{ state: LeaseState; number: number; cooled: number }>(
      "SELECT state, count(*) AS number, total(released_at_ms <= ?) AS cooled FROM lease INDEXED BY lease_left WHERE network IN (?) AND released_at_ms IS NOT NULL AND address BETWEEN ? AND ? GROUP BY state",
      cooledByMs,
      network,
      keyOf(from),
      keyOf(to),
    );
    const { number: cooling = 0, cooled = 0 } = left.find(({ state }) => state === "cooling") ?? {};
    const { number: releasing = 0 } = left.find(({ state }) => state === "releasing") ?? {};
    return { taken: BigInt(taken - cooled), releasing, cooling: cooling - cooled };
  }

  mark(name: string): string | undefined {
    return this.#row<{ value: string }>("SELECT value FROM mark WHERE name = ?", name)?.value;
  }

  setMark(name: string, value: string | undefined): void {
    assert(this.#inTransaction, "marks change inside a transaction");
    if (value === undefined) this.#changes("DELETE FROM mark WHERE name = ?", name);
    else this.#changes("INSERT OR REPLACE INTO mark VALUES (?, ?)", name, value);
  }

  remembered({ network, namespace, name, ifname }: PodPlace): readonly Ip[] {
    const rows = this.#all<{ address: AddressKey }>(
      "SELECT address FROM remembered WHERE network IN (?) AND pod_namespace IN (?) AND pod_name IN (?) AND ifname IN (?) ORDER BY turn DESC",
      ...[network, namespace, name, ifname],
    );
    return rows.map(({ address }) => ipOfKey(address));
  }

  remember({ network, namespace, name, ifname }: PodPlace, rangeSet: number, ip: Ip, most: number): void {
    assert(this.#inTransaction, "notes change inside a transaction");
    // A row that is replaced comes back under a turn of its own: the highest there is.
    const sql = "INSERT OR REPLACE INTO remembered VALUES (NULL, ?, ?, ?, ?, ?, ?)";
    this.#changes(sql, network, namespace, name, ifname, rangeSet, keyOf(ip));
    // Turns that are missing make the notes fewer than that, never more.
    this.#changes("DELETE FROM remembered WHERE turn <= (SELECT max(turn) FROM remembered) - ?", most);
  }

  pendingDetaches(): readonly Owner[] {
    const rows = this.#all<{ network: string; sandbox_id: string; ifname: string }>(
      "SELECT network, sandbox_id, ifname FROM departure ORDER BY since_ms, network, sandbox_id, ifname",
    );
    return rows.map(({ network, sandbox_id, ifname }) => ({ network, sandboxId: sandbox_id, ifname }));
  }

  hasPendingDetach({ network, sandboxId, ifname }: Owner): boolean {
    const sql = "SELECT 1 FROM departure WHERE network = ? AND sandbox_id = ? AND ifname = ?";
    return this.#row(sql, network, sandboxId, ifname) !== undefined;
  }

  setPendingDetach({ network, sandboxId, ifname }: Owner, present: boolean): void {
    assert(this.#inTransaction, "pending detaches change inside a transaction");
    if (present) {
      const sql = "INSERT INTO departure VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING";
      this.#changes(sql, network, sandboxId, ifname, Date.now());
    } else {
      const sql = "DELETE FROM departure WHERE network = ? AND sandbox_id = ? AND ifname = ?";
      this.#changes(sql, network, sandboxId, ifname);
    }
  }

  checkpoint(): boolean {
    return !this.#closed && this.#guarded(() => checkpoint(this.#db));
  }

  [Symbol.dispose](): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#statements.clear();
    closeDatabase(this.#db, this.#path);
  }

  /** A network that is broken up at random has hundreds of thousands of runs: none is kept, and numbers count them. */
  #taken(network: string, low: AddressKey, high: AddressKey): number {
    const before = this.#runAround(network, low);
    const last = this.#runAround(network, high);
    const reachingIn = before?.covers === 1 && before.begins === 0 ? distance(low, before.last) + 1 : 0;
    const reachingOut = last?.covers === 1 ? distance(high, last.last) : 0;
    const sql = "SELECT first, last FROM taken WHERE network = ? AND first BETWEEN ? AND ?";
    return this.#guarded(() => {
      let inside = 0;
      for (const row of this.#statement(sql).iterate(network, low, high)) {
        const { first, last: end } = row as unknown as RunRow;
        inside += distance(first, end) + 1;
      }
      return reachingIn + inside - reachingOut;
    });
  }

  /** A free address joins the runs on either side of it. */
  #take(network: string, key: AddressKey): void {
    const behind = keyBehind(key);
    const near = this.#all<AdjacentRow>(adjacentRuns, keyBefore(key), behind, network, behind);
    const before = near.find((run) => run.ends_before === 1);
    const after = near.find((run) => run.begins_behind === 1);
    if (after !== undefined) this.#dropRun(network, after);
    this.#setRun(network, { first: before?.first ?? key, last: after?.last ?? key });
  }

  /** An address leaves its run, which may fall into two. */
  #give(network: string, key: AddressKey): void {
    const run = this.#runAround(network, key);
    assert(run?.covers === 1, "an address with a lease is in a run");
    if (run.begins === 1) this.#dropRun(network, run);
    else this.#setRun(network, { first: run.first, last: keyBefore(key) });
    if (run.ends === 0) this.#setRun(network, { first: keyBehind(key), last: run.last });
  }

  /** The nearest of the runs that begin at this address or before: the one that the address lies in, where it does. */
  #runAround(network: string, key: AddressKey): RunAround | undefined {
    return this.#row<RunAround>(runAround, key, key, key, network, key);
  }

  #setRun(network: string, { first, last }: RunRow): void {
    this.#changes("INSERT OR REPLACE INTO taken VALUES (?, ?, ?)", network, first, last);
  }

  #dropRun(network: string, { first }: Pick<RunRow, "first">): void {
    this.#changes("DELETE FROM taken WHERE network = ? AND first = ?", network, first);
  }

  /** Compiled once, as all others: what reads a statement's text is code that an ADD needs for nothing else. */
  #run(sql: string): void {
    this.#use(sql, noValues, changesOf);
  }

  #all<Row>(sql: string, ...values: SQLInputValue[]): readonly Row[] {
    return this.#use(sql, values, rowsOf) as unknown as readonly Row[];
  }

  /** Of a statement that has one at most, or whose first is meant. */
  #row<Row>(sql: string, ...values: SQLInputValue[]): Row | undefined {
    return this.#use(sql, values, rowOf) as Row | undefined;
  }

  #changes(sql: string, ...values: SQLInputValue[]): number {
    return this.#use(sql, values, changesOf);
  }

  /** As `#guarded`, without a function for each use: an ADD has twenty. */
  #use<T>(sql: string, values: SQLInputValue[], use: Use<T>): T {
    try {
      return use(this.#statement(sql), values);
    } catch (caught) {
      return this.#useFailed(caught, sql, values, use);
    }
  }

  /** Apart, since a function that may be made in a function makes that one dearer in any case. */
  #useFailed<T>(failed: unknown, sql: string, values: SQLInputValue[], use: Use<T>): T {
    return this.#useAgain(failed, () => use(this.#statement(sql), values));
  }

  #statement(sql: string): StatementSync {
    const known = this.#statements.get(sql);
    if (known !== undefined) return known;
    const statement = this.#db.prepare(sql);
    this.#statements.set(sql, statement);
    return statement;
  }

  #guarded<T>(use: () => T): T {
    try {
      return use();
    } catch (caught) {
      return this.#useAgain(caught, use);
    }
  }

  /** @throws {CniError} what failed, unless the store was busy and is not any more */
  #useAgain<T>(failed: unknown, use: () => T): T {
    try {
      return retryFailed(failed, use);
    } catch (caught) {
      const error = storeError(caught, this.#path);
      if (isDamage(error)) this.#onDamage?.(CniError.from(error));
      throw error;
    }
  }
}

const noValues: SQLInputValue[] = [];

/** What is taken from a statement. */
type Use<T> = (statement: StatementSync, values: SQLInputValue[]) => T;

const rowsOf = (statement: StatementSync, values: SQLInputValue[]) => statement.all(...values);
const rowOf = (statement: StatementSync, values: SQLInputValue[]) => statement.get(...values);
const changesOf = (statement: StatementSync, values: SQLInputValue[]) => Number(statement.run(...values).changes);
