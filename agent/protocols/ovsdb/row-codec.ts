import { isObject, show } from "../../../shared/schema/json-fields.ts";
import { decodeValue, defaultValue, encodeValue, type Value } from "./columns.ts";
import { OvsdbCode, OvsdbError } from "./ovsdb-error.ts";
import { columnType, type TableName } from "./tables.ts";
import { decodeAtom, MalformedValue } from "./values.ts";

/** A row without its types: `_uuid` and columns by name. */
export type AnyRow = Readonly<Record<string, Value>>;

/** A row as it is sent; an optional column that is there as `undefined` is to be empty. @throws {OvsdbError} `invalid` */
export function encodeRow(table: TableName, row: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const encoded: [string, unknown][] = [];
  for (const [column, value] of Object.entries(row)) {
    const type = columnType(table, column);
    if (type === undefined) throw unknownColumn(table, column);
    encoded.push([column, encodeValue(type, value, `${table}.${column}`)]);
  }
  return Object.fromEntries(encoded);
}

export function unknownColumn(table: TableName, column: string): OvsdbError {
  const is = `"${column}" is no column of ${table} that this client knows, wanted one of tables.ts`;
  return new OvsdbError(OvsdbCode.invalid, `Cannot write a transaction: ${is}`);
}

/**
 * A row as it came: a server may leave out columns that have their default. What was not asked for is passed over.
 * @throws {MalformedValue}
 */
export function decodeRow(table: TableName, columns: readonly string[], json: unknown): Record<string, Value> {
  if (!isObject(json)) throw new MalformedValue(`a row of ${table} is ${show(json)}, wanted an object`);
  const row: Record<string, Value> = {};
  for (const column of columns) row[column] = decodeColumn(table, column, json);
  return row;
}

/** Only the columns that are there. @throws {MalformedValue} */
export function decodePresent(table: TableName, columns: readonly string[], json: unknown): Record<string, Value> {
  const present = columns.filter((column) => isObject(json) && Object.hasOwn(json, column));
  return decodeRow(table, present, json);
}

function decodeColumn(table: TableName, column: string, json: Readonly<Record<string, unknown>>): Value {
  const has = Object.hasOwn(json, column);
  try {
    if (column === "_uuid") return decodeAtom("uuid", has ? json[column] : undefined);
    const type = columnType(table, column);
    if (type === undefined) throw new MalformedValue("it is none of ours");
    return has ? decodeValue(type, json[column]) : defaultValue(type);
  } catch (caught) {
    if (!(caught instanceof MalformedValue)) throw caught;
    throw new MalformedValue(`column "${column}" of a row of ${table}: ${caught.message}`);
  }
}
