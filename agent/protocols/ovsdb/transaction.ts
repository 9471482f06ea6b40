import { encodeMutation, encodeWhere, type Mutation, type Where } from "./conditions.ts";
import { OvsdbCode, OvsdbError } from "./ovsdb-error.ts";
import { encodeRow } from "./row-codec.ts";
import type { ColumnName, RowOf, TableName, WritableRow } from "./tables.ts";
import type { NamedUuid, Uuid } from "./values.ts";

/** A place in a transaction's answer. */
export interface Inserted extends NamedUuid {
  readonly at: number;
}
export interface Counted {
  readonly at: number;
  readonly counted: true;
}
export interface Selected<T extends TableName, C extends ColumnName<T>> {
  readonly at: number;
  readonly table: T;
  readonly columns: readonly C[];
}

export type ExpectedResult =
  | { readonly t: "insert" }
  | { readonly t: "count" }
  | { readonly t: "nothing" }
  | { readonly t: "select"; readonly table: TableName; readonly columns: readonly string[] };

interface Step {
  readonly json: Readonly<Record<string, unknown>>;
  /** As an error names it. */
  readonly words: string;
  readonly result: ExpectedResult;
}

export interface WaitOptions<T extends TableName, C extends ColumnName<T>> {
  readonly columns: readonly C[];
  readonly until: "==" | "!=";
  /** With values for `columns`. */
  readonly rows: readonly Pick<WritableRow<T>, C>[];
  /** 0, the default, only looks: the transaction fails at once where it is not so. */
  readonly timeoutMs?: number;
}

/**
 * Operations that are carried out together or not at all (RFC 7047, sections 4.1.3 and 5.2). What the methods answer
 * names the operation's result in the outcome; an inserted row can be named in later operations, and in earlier ones.
 */
export class Transaction {
  /** Continues "Cannot …" where the transaction fails, as in `add port "p1"`. */
  readonly action: string;
  readonly #steps: Step[] = [];

  constructor(action: string) {
    this.action = action;
  }

  get steps(): readonly Step[] {
    return this.#steps;
  }

  /** Columns that are left out get their default. @throws {OvsdbError} `invalid`, as every method here */
  insert<T extends TableName>(table: T, row: WritableRow<T>): Inserted {
    const at = this.#steps.length;
    const namedUuid = `row${at}`;
    this.#push("insert", table, { row: encodeRow(table, row), "uuid-name": namedUuid }, { t: "insert" });
    return { at, namedUuid };
  }

  select<T extends TableName, C extends ColumnName<T>>(
    table: T,
    where: Where<T>,
    columns: readonly C[],
  ): Selected<T, C> {
    const at = this.#steps.length;
    const result: ExpectedResult = { t: "select", table, columns: ["_uuid", ...columns] };
    this.#push("select", table, { where: encodeWhere(table, where), columns: result.columns }, result);
    return { at, table, columns };
  }

  update<T extends TableName>(table: T, where: Where<T>, row: WritableRow<T>): Counted {
    return this.#count("update", table, { where: encodeWhere(table, where), row: encodeRow(table, row) });
  }

  mutate<T extends TableName>(table: T, where: Where<T>, mutations: readonly Mutation<T>[]): Counted {
    const encoded = mutations.map((mutation) => encodeMutation(table, mutation));
    return this.#count("mutate", table, { where: encodeWhere(table, where), mutations: encoded });
  }

  delete<T extends TableName>(table: T, where: Where<T>): Counted {
    return this.#count("delete", table, { where: encodeWhere(table, where) });
  }

  /** Until the rows that match are (`==`), or are not, those given; `timed out` where that does not come in time. */
  wait<T extends TableName, C extends ColumnName<T>>(table: T, where: Where<T>, options: WaitOptions<T, C>): void {
    const { columns, until, rows, timeoutMs = 0 } = options;
    const encoded = rows.map((row) => encodeRow(table, row));
    const members = { where: encodeWhere(table, where), columns, until, rows: encoded, timeout: timeoutMs };
    this.#push("wait", table, members, { t: "nothing" });
  }

  /** Goes to the database's log with the change. */
  comment(comment: string): void {
    this.#push("comment", undefined, { comment }, { t: "nothing" });
  }

  /** `durable`: answered once the disk has it. */
  commit(durable: boolean): void {
    this.#push("commit", undefined, { durable }, { t: "nothing" });
  }

  /** Makes the transaction fail: a rehearsal of those before. */
  abort(): void {
    this.#push("abort", undefined, {}, { t: "nothing" });
  }

  /** The parameters of `transact` (RFC 7047, section 4.1.3). */
  params(database: string): readonly unknown[] {
    return [database, ...this.#steps.map(({ json }) => json)];
  }

  #count(op: string, table: TableName, members: Readonly<Record<string, unknown>>): Counted {
    const at = this.#steps.length;
    this.#push(op, table, members, { t: "count" });
    return { at, counted: true };
  }

  #push(
    op: string,
    table: TableName | undefined,
    members: Readonly<Record<string, unknown>>,
    result: ExpectedResult,
  ): void {
    const json = { op, ...(table === undefined ? {} : { table }), ...members };
    this.#steps.push({ json, words: table === undefined ? op : `${op} ${table}`, result });
  }
}

/** What a transaction brought, operation by operation. */
export class TransactionOutcome {
  readonly #results: readonly unknown[];

  /** @param results checked, in the order of the operations */
  constructor(results: readonly unknown[]) {
    this.#results = results;
  }

  uuidOf({ at }: Inserted): Uuid {
    return this.#results[at] as Uuid;
  }

  /** Rows that an update, mutate or delete has met, changed or not. */
  countOf({ at }: Counted): number {
    return this.#results[at] as number;
  }

  rowsOf<T extends TableName, C extends ColumnName<T>>({ at }: Selected<T, C>): readonly RowOf<T, C>[] {
    return this.#results[at] as readonly RowOf<T, C>[];
  }
}

/** For a transaction that a caller has put together wrongly. */
export function requireSteps(transaction: Transaction): void {
  if (transaction.steps.length > 0) return;
  throw new OvsdbError(OvsdbCode.invalid, `Cannot ${transaction.action}: it has 0 operations, wanted at least one`);
}
