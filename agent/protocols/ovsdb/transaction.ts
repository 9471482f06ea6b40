import { isObject, show } from "../../../shared/schema/json-fields.ts";
import { encodeElements, encodeValue, type KeysOf, type WritableOf } from "./columns.ts";
import { OvsdbCode, OvsdbError, serverError } from "./ovsdb-error.ts";
import {
  type ColumnName,
  columnType,
  decodeRow,
  encodeRow,
  type RowOf,
  type TableName,
  type TypeOf,
  unknownColumn,
  type WritableRow,
} from "./tables.ts";
import { decodeAtom, encodeAtom, MalformedValue, type NamedUuid, type Uuid } from "./values.ts";

type Order = "<" | "<=" | ">" | ">=";
type Equality = "==" | "!=";

/** RFC 7047, section 5.1, `<condition>`. For sets and maps, `includes` and `excludes` take the elements. */
type Condition<T extends TableName> =
  | readonly ["_uuid", Equality, Uuid | NamedUuid]
  | {
      [C in ColumnName<T>]: readonly [
        C,
        Equality | "includes" | "excludes" | (TypeOf<T, C>["key"] extends "integer" | "real" ? Order : never),
        WritableOf<TypeOf<T, C>>,
      ];
    }[ColumnName<T>];

/** All of them must hold; none holds for every row. */
type Where<T extends TableName> = readonly Condition<T>[];

/** RFC 7047, section 5.1, `<mutation>`. */
type Mutation<T extends TableName> = {
  [C in ColumnName<T>]: TypeOf<T, C>["shape"] extends "set" | "map"
    ?
        | readonly [C, "insert", WritableOf<TypeOf<T, C>>]
        | readonly [C, "delete", WritableOf<TypeOf<T, C>> | KeysOf<TypeOf<T, C>>]
    : TypeOf<T, C>["key"] extends "integer" | "real"
      ? readonly [C, "+=" | "-=" | "*=" | "/=" | "%=", number]
      : never;
}[ColumnName<T>];

/** A place in a transaction's answer. */
export interface Inserted extends NamedUuid {
  readonly at: number;
}
interface Counted {
  readonly at: number;
  readonly counted: true;
}
interface Selected<T extends TableName, C extends ColumnName<T>> {
  readonly at: number;
  readonly table: T;
  readonly columns: readonly C[];
}

type ExpectedResult =
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

interface WaitOptions<T extends TableName, C extends ColumnName<T>> {
  readonly columns: readonly C[];
  readonly until: "==" | "!=";
  /** With values for `columns`. */
  readonly rows: readonly Pick<WritableRow<T>, C>[];
  /** 0, the default, only checks: the transaction fails at once if the condition does not hold. */
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

  /** Makes the transaction fail, as a test of the operations before. */
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

/** The results of a transaction, by operation. */
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

/** Refuses a transaction without operations. */
export function requireSteps(transaction: Transaction): void {
  if (transaction.steps.length > 0) return;
  throw new OvsdbError(OvsdbCode.invalid, `Cannot ${transaction.action}: it has 0 operations, wanted at least one`);
}

/** @throws {OvsdbError} `invalid` */
function encodeWhere<T extends TableName>(table: T, where: Where<T>): unknown[] {
  return where.map(([column, test, value]) => {
    if (column === "_uuid") return ["_uuid", test, encodeAtom("uuid", value, `${table}._uuid`)];
    const type = columnType(table, column);
    if (type === undefined) throw unknownColumn(table, column);
    return [column, test, encodeValue(type, value, `${table}.${column}`)];
  });
}

/** @throws {OvsdbError} `invalid` */
function encodeMutation<T extends TableName>(table: T, mutation: Mutation<T>): unknown[] {
  const [column, how, value] = mutation as readonly [string, string, unknown];
  const type = columnType(table, column);
  if (type === undefined) throw unknownColumn(table, column);
  const where = `${table}.${column}`;
  const isList = Array.isArray(value) || value instanceof Set;
  // Of a map, pairs go where they stand as they are written, keys in any case.
  if (type.shape === "map" && how === "delete" && isList) return [column, how, encodeElements(type.key, value, where)];
  if (type.shape === "set" || type.shape === "map") return [column, how, encodeValue(type, value, where)];
  if (type.key !== "integer" && type.key !== "real") {
    const is = `"${where}" has neither numbers nor a set nor a map, wanted one that can be changed in place`;
    throw new OvsdbError(OvsdbCode.invalid, `Cannot write a transaction: ${is}`);
  }
  return [column, how, encodeAtom(type.key, value, where)];
}

/**
 * Reads the `result` of `transact` (RFC 7047, section 4.1.3). The errors stand inside: at the place of the operation
 * that failed, `null` behind it; one place further than there are operations where the commit failed.
 * @throws {OvsdbError} for a transaction that was not carried out, or an answer that says neither
 */
export function readAnswer(transaction: Transaction, result: unknown): TransactionOutcome {
  const { steps, action } = transaction;
  const malformed = (is: string): OvsdbError =>
    new OvsdbError(OvsdbCode.malformed, `Cannot ${action}: the answer of the server ${is}, wanted one of RFC 7047`);
  if (!Array.isArray(result)) throw malformed(`is ${show(result)}`);
  const failed = result.findIndex((each) => isObject(each) && Object.hasOwn(each, "error"));
  if (failed >= 0) throw refusal(transaction, failed, result[failed]);
  if (result.length !== steps.length) throw malformed(`has ${result.length} results for ${steps.length} operations`);
  const read = steps.map(({ result: expected, words }, at) => {
    try {
      return readResult(expected, result[at]);
    } catch (caught) {
      if (!(caught instanceof MalformedValue)) throw caught;
      throw malformed(`to operation ${at} (${words}) cannot be read (${caught.message})`);
    }
  });
  return new TransactionOutcome(read);
}

function readResult(expected: ExpectedResult, json: unknown): unknown {
  if (!isObject(json)) throw new MalformedValue(`it is ${show(json)}`);
  switch (expected.t) {
    case "nothing":
      return undefined;
    case "insert":
      return decodeAtom("uuid", json["uuid"]);
    case "count":
      return decodeAtom("integer", json["count"]);
    case "select": {
      const { table, columns } = expected;
      if (!Array.isArray(json["rows"])) throw new MalformedValue(`its rows are ${show(json["rows"])}`);
      return json["rows"].map((row) => decodeRow(table, columns, row));
    }
  }
}

function refusal({ action, steps }: Transaction, at: number, json: Readonly<Record<string, unknown>>): OvsdbError {
  const words = steps[at]?.words;
  const where = words === undefined ? "the commit" : `operation ${at} (${words})`;
  const { code, text } = serverError(json);
  return new OvsdbError(code, `Cannot ${action}: ${where} is answered ${text}`, { operation: at });
}
