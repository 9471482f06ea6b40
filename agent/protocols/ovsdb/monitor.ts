import { isObject, show } from "../../../shared/schema/json-fields.ts";
import { changedValue } from "./columns.ts";
import type { Connection, Outcome } from "./connection.ts";
import { serverError } from "./ovsdb-error.ts";
import { type AnyRow, columnType, decodePresent, decodeRow, type TableName } from "./tables.ts";
import { MalformedValue, parseUuid, type Uuid } from "./values.ts";
import type { Monitored, RowChange } from "./view.ts";

export interface MonitorEvents {
  /** The whole state, once, before any change. It may throw `MalformedValue`. */
  state(rows: readonly RowChange[]): void;
  /** One transaction's changes. It may throw `MalformedValue`. */
  changes(changes: readonly RowChange[]): void;
  known: Known;
}

/**
 * The monitor of one connection (RFC 7047, sections 4.1.5 and 4.1.6): by `monitor_cond` (ovsdb-server(7), section
 * 4.1.12), whose updates say differences only, or where the server has none by `monitor`.
 */
export class MonitorSession {
  readonly #database: string;
  readonly #monitored: Monitored;
  readonly #events: MonitorEvents;
  #form: UpdateForm | undefined;

  constructor(database: string, monitored: Monitored, events: MonitorEvents) {
    this.#database = database;
    this.#monitored = monitored;
    this.#events = events;
  }

  /** Begins. What goes wrong ends the connection, with the reason. */
  start(connection: Connection, timeoutMs: number): void {
    this.#ask(connection, "monitor_cond", "update2", timeoutMs, (outcome) => {
      const isUnknown = outcome.t === "error" && serverError(outcome.error).code === "unknown method";
      if (isUnknown) this.#ask(connection, "monitor", "update", timeoutMs, () => undefined);
      return isUnknown;
    });
  }

  /** A notification of the server. @throws {MalformedValue} */
  notify(method: string, params: readonly unknown[]): void {
    if (method === "monitor_canceled") throw new MalformedValue("the database is not served any more");
    // A server may tell what later versions know; what was not asked for is nothing to us.
    if (method !== "update" && method !== "update2") return;
    if (method !== this.#form || params.length !== 2 || params[0] !== monitorId)
      throw new MalformedValue("it belongs to no monitor of ours");
    const { known, changes } = this.#events;
    const read = readUpdates(method, this.#monitored, params[1], known);
    if (read.length > 0) changes(read);
  }

  #ask(
    connection: Connection,
    method: string,
    form: UpdateForm,
    timeoutMs: number,
    otherwise: (outcome: Outcome) => boolean | undefined,
  ): void {
    const requests = Object.entries(this.#monitored).map(([table, columns]) => [table, [{ columns }]]);
    const params = [this.#database, monitorId, Object.fromEntries(requests)];
    connection.request(method, params, timeoutMs, (outcome) => {
      if (outcome.t === "result") {
        try {
          this.#events.state(readUpdates(form, this.#monitored, outcome.result, () => undefined));
          this.#form = form;
        } catch (caught) {
          if (!(caught instanceof MalformedValue)) throw caught;
          connection.close(`the state of the database cannot be read: ${caught.message}`);
        }
      } else if (otherwise(outcome) !== true) connection.close(why(method, outcome, timeoutMs));
    });
  }
}

/** One for a connection: the server wants them different. */
const monitorId = "pipette";

function why(method: string, outcome: Exclude<Outcome, { t: "result" }>, timeoutMs: number): string {
  if (outcome.t === "error") return `the server answers ${serverError(outcome.error).text} to ${method}`;
  if (outcome.t === "gone" || outcome.t === "unsent") return outcome.reason;
  return `the server has not answered ${method} within ${timeoutMs} ms`;
}

/** How a server tells changes: RFC 7047, section 4.1.6, or ovsdb-server(7), section 4.1.14, which sends less. */
export type UpdateForm = "update" | "update2";

/** The row that is known at present. */
export type Known = (table: TableName, uuid: Uuid) => AnyRow | undefined;

/**
 * Reads `<table-updates>` or `<table-updates2>`; nothing is changed yet.
 * @throws {MalformedValue} also for a change of a row that is not known, or the coming of one that is
 */
export function readUpdates(form: UpdateForm, monitored: Monitored, json: unknown, known: Known): RowChange[] {
  if (!isObject(json)) throw new MalformedValue(`the tables are ${show(json)}, wanted an object`);
  const changes: RowChange[] = [];
  for (const [table, rows] of Object.entries(json)) {
    if (!isWatched(monitored, table)) throw new MalformedValue(`table ${show(table)} was not asked for`);
    if (!isObject(rows)) throw new MalformedValue(`the rows of ${table} are ${show(rows)}, wanted an object`);
    const columns = monitored[table] ?? [];
    for (const [text, update] of Object.entries(rows)) {
      const uuid = parseUuid(text);
      if (uuid === undefined) throw new MalformedValue(`a row of ${table} is called ${show(text)}, wanted a UUID`);
      if (!isObject(update)) throw new MalformedValue(`row "${uuid}" of ${table} is ${show(update)}`);
      const before = known(table, uuid);
      const read = form === "update" ? readWhole : readDifference;
      changes.push({ table, uuid, before, after: read({ table, uuid, columns, before, update }) });
    }
  }
  return changes;
}

interface RowUpdate {
  readonly table: TableName;
  readonly uuid: Uuid;
  readonly columns: readonly string[];
  readonly before: AnyRow | undefined;
  readonly update: Readonly<Record<string, unknown>>;
}

const isWatched = (monitored: Monitored, table: string): table is TableName => Object.hasOwn(monitored, table);

/** `<row-update>`: `new` has all columns, `old` those that were different. */
function readWhole(row: RowUpdate): AnyRow | undefined {
  const { update } = row;
  if (Object.hasOwn(update, "new")) return inserted(row, update["new"]);
  if (Object.hasOwn(update, "old")) return removed(row);
  throw new MalformedValue(`row "${row.uuid}" of ${row.table} has neither "old" nor "new"`);
}

/** `<row-update2>`: `initial` and `insert` leave out what has its default, `modify` all but the differences. */
function readDifference(row: RowUpdate): AnyRow | undefined {
  const { table, uuid, columns, before, update } = row;
  const isNew = Object.hasOwn(update, "initial") ? "initial" : "insert";
  if (Object.hasOwn(update, isNew)) {
    if (before !== undefined) throw new MalformedValue(`row "${uuid}" of ${table} comes, and was there`);
    return inserted(row, update[isNew]);
  }
  if (Object.hasOwn(update, "delete")) return removed(row);
  if (!Object.hasOwn(update, "modify"))
    throw new MalformedValue(`row "${uuid}" of ${table} is none of initial, insert, modify and delete`);
  if (before === undefined) throw new MalformedValue(`row "${uuid}" of ${table} changes, and was not there`);
  const differences = decodePresent(table, columns, update["modify"]);
  const changed = Object.entries(differences).map(([column, difference]) => {
    const type = columnType(table, column);
    return [column, type === undefined ? difference : changedValue(type, before[column], difference)] as const;
  });
  return { ...before, ...Object.fromEntries(changed) };
}

const inserted = ({ table, uuid, columns }: RowUpdate, json: unknown): AnyRow => ({
  _uuid: uuid,
  ...decodeRow(table, columns, json),
});

function removed({ table, uuid, before }: RowUpdate): undefined {
  if (before === undefined) throw new MalformedValue(`row "${uuid}" of ${table} goes, and was not there`);
}
