import { encodeElements, encodeValue, type KeysOf, type WritableOf } from "./columns.ts";
import { OvsdbCode, OvsdbError } from "./ovsdb-error.ts";
import { unknownColumn } from "./row-codec.ts";
import { type ColumnName, columnType, type TableName, type TypeOf } from "./tables.ts";
import { encodeAtom, type NamedUuid, type Uuid } from "./values.ts";

type Order = "<" | "<=" | ">" | ">=";
type Equality = "==" | "!=";

/** RFC 7047, section 5.1, `<condition>`. Of sets and maps, `includes` and `excludes` take what is to be in them. */
export type Condition<T extends TableName> =
  | readonly ["_uuid", Equality, Uuid | NamedUuid]
  | {
      [C in ColumnName<T>]: readonly [
        C,
        Equality | "includes" | "excludes" | (TypeOf<T, C>["key"] extends "integer" | "real" ? Order : never),
        WritableOf<TypeOf<T, C>>,
      ];
    }[ColumnName<T>];

/** All of them must hold; none holds for every row. */
export type Where<T extends TableName> = readonly Condition<T>[];

/** RFC 7047, section 5.1, `<mutation>`. */
export type Mutation<T extends TableName> = {
  [C in ColumnName<T>]: TypeOf<T, C>["shape"] extends "set" | "map"
    ?
        | readonly [C, "insert", WritableOf<TypeOf<T, C>>]
        | readonly [C, "delete", WritableOf<TypeOf<T, C>> | KeysOf<TypeOf<T, C>>]
    : TypeOf<T, C>["key"] extends "integer" | "real"
      ? readonly [C, "+=" | "-=" | "*=" | "/=" | "%=", number]
      : never;
}[ColumnName<T>];

/** @throws {OvsdbError} `invalid` */
export function encodeWhere<T extends TableName>(table: T, where: Where<T>): unknown[] {
  return where.map(([column, test, value]) => {
    if (column === "_uuid") return ["_uuid", test, encodeAtom("uuid", value, `${table}._uuid`)];
    const type = columnType(table, column);
    if (type === undefined) throw unknownColumn(table, column);
    return [column, test, encodeValue(type, value, `${table}.${column}`)];
  });
}

/** @throws {OvsdbError} `invalid` */
export function encodeMutation<T extends TableName>(table: T, mutation: Mutation<T>): unknown[] {
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
