import { withTimeout } from "../../../shared/async/with-timeout.ts";
import { sameValue } from "./columns.ts";
import { OvsdbCode, OvsdbError } from "./ovsdb-error.ts";
import type { AnyRow, ColumnName, RowOf, TableName } from "./tables.ts";
import { MalformedValue, type Uuid } from "./values.ts";

/** Rows of the local view: a bridge with 10,000 ports has 20,000. */
const maxViewRows = 262_144;

/** The tables and columns to be watched. */
export type Monitored = { readonly [T in TableName]?: readonly ColumnName<T>[] };

/** The watched tables, and a row of one with the watched columns. */
export type WatchedTable<M extends Monitored> = keyof M & TableName;
export type WatchedRow<M extends Monitored, T extends WatchedTable<M>> = M[T] extends readonly (infer C extends
  ColumnName<T>)[]
  ? RowOf<T, C>
  : never;

/** A row that came (no `before`), changed, or went (no `after`). Rows never change themselves: they are replaced. */
export interface RowChange {
  readonly table: TableName;
  readonly uuid: Uuid;
  readonly before: AnyRow | undefined;
  readonly after: AnyRow | undefined;
}

/** One table as the server has it, by UUID, and by name where it has a watched column of that name. */
class WatchedRows {
  readonly rows = new Map<Uuid, AnyRow>();
  readonly #byName = new Map<unknown, Uuid>();

  named(name: string): AnyRow | undefined {
    const uuid = this.#byName.get(name);
    return uuid === undefined ? undefined : this.rows.get(uuid);
  }

  put(uuid: Uuid, after: AnyRow | undefined): void {
    const before = this.rows.get(uuid);
    const name = before?.["name"];
    // A successor of the same name may have come first.
    if (name !== undefined && this.#byName.get(name) === uuid) this.#byName.delete(name);
    if (after === undefined) this.rows.delete(uuid);
    else {
      this.rows.set(uuid, after);
      if (after["name"] !== undefined) this.#byName.set(after["name"], uuid);
    }
  }
}

/**
 * The watched tables as reported by the server, by whole transactions. It outlives a connection: until the next one has
 * sent its state it shows the last known one, and `isCurrent` is `false`.
 */
export class View<M extends Monitored> {
  readonly #tables: ReadonlyMap<TableName, WatchedRows>;
  readonly #maxRows: number;
  #current = false;
  #count = 0;

  constructor(monitored: M, maxRows: number = maxViewRows) {
    this.#maxRows = maxRows;
    this.#tables = new Map(Object.keys(monitored).map((table) => [table as TableName, new WatchedRows()]));
  }

  /** Whether there is a connection that reports every change. */
  get isCurrent(): boolean {
    return this.#current;
  }

  /** All rows of a table. The map changes with the next update; its rows do not. */
  rows<T extends WatchedTable<M>>(table: T): ReadonlyMap<Uuid, WatchedRow<M, T>> {
    return this.#table(table).rows as ReadonlyMap<string, unknown> as ReadonlyMap<Uuid, WatchedRow<M, T>>;
  }

  row<T extends WatchedTable<M>>(table: T, uuid: Uuid): WatchedRow<M, T> | undefined {
    return this.rows(table).get(uuid);
  }

  /** By the column `name`, which is unique in `Bridge`, `Port` and `Interface`, where that is watched. */
  named<T extends WatchedTable<M>>(table: T, name: string): WatchedRow<M, T> | undefined {
    return this.#table(table).named(name) as WatchedRow<M, T> | undefined;
  }

  /** The connection is lost. */
  outdate(): void {
    this.#current = false;
  }

  /**
   * Takes over the changes of one transaction.
   * @throws {MalformedValue} if there are too many rows; then the view cannot be relied on
   */
  apply(changes: readonly RowChange[]): void {
    for (const { table, uuid, before, after } of changes) {
      this.#count += (after === undefined ? 0 : 1) - (before === undefined ? 0 : 1);
      this.#tables.get(table)?.put(uuid, after);
    }
    if (this.#count > this.#maxRows) throw new MalformedValue(`there are more than ${this.#maxRows} rows`);
  }

  /**
   * Takes over the whole state of a new connection.
   * @returns what is different from before
   */
  replace(state: readonly RowChange[]): readonly RowChange[] {
    const told = new Map([...this.#tables.keys()].map((table) => [table, new Set<Uuid>()]));
    const changes: RowChange[] = [];
    for (const { table, uuid, after } of state) {
      told.get(table)?.add(uuid);
      const before = this.#tables.get(table)?.rows.get(uuid);
      if (before === undefined || after === undefined || !sameRow(before, after))
        changes.push({ table, uuid, before, after });
    }
    for (const [table, { rows }] of this.#tables) {
      for (const [uuid, before] of rows) {
        if (told.get(table)?.has(uuid) !== true) changes.push({ table, uuid, before, after: undefined });
      }
    }
    this.apply(changes);
    this.#current = true;
    return changes;
  }

  #table(table: TableName): WatchedRows {
    const found = this.#tables.get(table);
    if (found === undefined) throw new Error(`Broken invariant: table ${table} is not watched`);
    return found;
  }
}

const sameRow = (a: AnyRow, b: AnyRow): boolean => Object.keys(b).every((column) => sameValue(a[column], b[column]));

export interface WaitBounds {
  readonly timeoutMs: number;
  /** Continues "Cannot …". */
  readonly action: string;
  /** Ends the wait when aborted. */
  readonly signal?: AbortSignal | undefined;
}

/** A search in the changed rows, or (`undefined`) in all rows. */
type Look<T> = (changes: readonly RowChange[] | undefined) => T | undefined;

interface Wait {
  /** @returns whether it is over */
  look(changes: readonly RowChange[] | undefined): boolean;
  readonly action: string;
  fail(error: OvsdbError): void;
}

/** Waiters for a state of the local view. */
export class RowWaits {
  readonly #waits = new Set<Wait>();

  /**
   * @param look called at once if `isCurrent`, and at every change; an error ends the wait
   * @throws {OvsdbError} `not seen` where the time is over
   */
  add<T>(look: Look<T>, isCurrent: boolean, { timeoutMs, action, signal }: WaitBounds): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const wait: Wait = {
      look(changes) {
        try {
          const found = look(changes);
          if (found !== undefined) resolve(found);
          return found !== undefined;
        } catch (caught) {
          reject(caught);
          return true;
        }
      },
      action,
      fail: reject,
    };
    if (isCurrent && wait.look(undefined)) return promise;
    const notSeen = (is: string): OvsdbError => new OvsdbError(OvsdbCode.notSeen, `Cannot ${action}: ${is}`);
    const stop = (): void => reject(notSeen("the caller has given up"));
    if (signal?.aborted === true) stop();
    signal?.addEventListener("abort", stop);
    this.#waits.add(wait);
    return withTimeout(promise, timeoutMs, () => {
      throw notSeen(`the database has not come to show it, wanted it within ${timeoutMs} ms`);
    }).finally(() => {
      signal?.removeEventListener("abort", stop);
      this.#waits.delete(wait);
    });
  }

  /** Rows have changed; `undefined`: all rows have to be searched again. */
  look(changes: readonly RowChange[] | undefined): void {
    for (const wait of this.#waits) {
      if (wait.look(changes)) this.#waits.delete(wait);
    }
  }

  failAll(error: (action: string) => OvsdbError): void {
    for (const wait of this.#waits) wait.fail(error(wait.action));
    this.#waits.clear();
  }
}
