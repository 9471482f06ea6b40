import { show } from "../../../shared/schema/json-fields.ts";
import { OvsdbCode, OvsdbError } from "./ovsdb-error.ts";
import {
  type Atom,
  type AtomName,
  type AtomTypes,
  decodeAtom,
  decodeMap,
  decodeSet,
  encodeAtom,
  MalformedValue,
  type WritableAtom,
} from "./values.ts";

/** RFC 7047, section 3.2, `<type>`: one value exactly, one or none, any number, or pairs. */
export type Shape = "one" | "optional" | "set" | "map";

export interface ColumnType<
  S extends Shape = Shape,
  K extends AtomName = AtomName,
  V extends AtomName | undefined = AtomName | undefined,
> {
  readonly shape: S;
  readonly key: K;
  /** Of a map. */
  readonly value: V;
  /** The table that UUIDs in it belong to. */
  readonly refTable?: string;
}

export const one = <K extends AtomName>(key: K): ColumnType<"one", K, undefined> => plain("one", key);
export const optional = <K extends AtomName>(key: K): ColumnType<"optional", K, undefined> => plain("optional", key);
export const setOf = <K extends AtomName>(key: K): ColumnType<"set", K, undefined> => plain("set", key);
/** UUIDs of rows in another table. */
export const refs = (refTable: string): ColumnType<"set", "uuid", undefined> => ({ ...setOf("uuid"), refTable });
export const mapOf = <K extends AtomName, V extends AtomName>(key: K, value: V): ColumnType<"map", K, V> => ({
  shape: "map",
  key,
  value,
});

const plain = <S extends Shape, K extends AtomName>(shape: S, key: K): ColumnType<S, K, undefined> => ({
  shape,
  key,
  value: undefined,
});

/** A value as it is read. */
export type ValueOf<C extends ColumnType> =
  C extends ColumnType<infer S, infer K, infer V>
    ? {
        readonly one: AtomTypes[K];
        readonly optional: AtomTypes[K] | undefined;
        readonly set: ReadonlySet<AtomTypes[K]>;
        readonly map: ReadonlyMap<AtomTypes[K], V extends AtomName ? AtomTypes[V] : never>;
      }[S]
    : never;

type Elements<T> = readonly T[] | ReadonlySet<T>;
type Pairs<K, V> = ReadonlyMap<K, V> | (K extends string ? Readonly<Record<string, V>> : never);

/** A value as it may be written: what is read, arrays for sets, plain objects for maps with keys of text. */
export type WritableOf<C extends ColumnType> =
  C extends ColumnType<infer S, infer K, infer V>
    ? {
        readonly one: WritableAtom<K>;
        readonly optional: WritableAtom<K> | undefined;
        readonly set: Elements<WritableAtom<K>>;
        readonly map: Pairs<WritableAtom<K>, V extends AtomName ? WritableAtom<V> : never>;
      }[S]
    : never;

/** The keys of a map, or the elements of a set: what `delete` of a mutation takes. */
export type KeysOf<C extends ColumnType> = C extends ColumnType<Shape, infer K> ? Elements<WritableAtom<K>> : never;

/** Any value of any column. */
export type Value = Atom | undefined | ReadonlySet<Atom> | ReadonlyMap<Atom, Atom>;

/** @throws {MalformedValue} */
export function decodeValue(type: ColumnType, json: unknown): Value {
  switch (type.shape) {
    case "one":
      return decodeAtom(type.key, json);
    case "set":
      return decodeSet(type.key, json);
    case "map":
      return decodeMap(type.key, type.value ?? "string", json);
    case "optional": {
      const set = decodeSet(type.key, json);
      if (set.size > 1) throw new MalformedValue(`an optional value is ${show(json)}`);
      const [value] = set;
      return value;
    }
  }
}

/** What a column has that the server leaves out of a row: RFC 7047, section 5.2.1. */
export function defaultValue(type: ColumnType): Value {
  if (type.shape === "optional") return undefined;
  if (type.shape === "set") return new Set();
  if (type.shape === "map") return new Map();
  const atoms = { string: "", integer: 0, real: 0, boolean: false, uuid: "00000000-0000-0000-0000-000000000000" };
  return atoms[type.key] as Atom;
}

/** @param where the column, for the error. @throws {OvsdbError} `invalid` */
export function encodeValue(type: ColumnType, value: unknown, where: string): unknown {
  if (type.shape === "one") return encodeAtom(type.key, value, where);
  if (type.shape === "optional") return value === undefined ? ["set", []] : encodeAtom(type.key, value, where);
  if (type.shape === "set") return encodeElements(type.key, value, where);
  const pairs = value instanceof Map ? [...value] : entriesOf(value, where);
  const { key, value: atom = "string" } = type;
  return ["map", pairs.map(([left, right]) => [encodeAtom(key, left, where), encodeAtom(atom, right, where)])];
}

/** A set, also of the keys of a map. @throws {OvsdbError} `invalid` */
export function encodeElements(key: AtomName, value: unknown, where: string): unknown {
  if (!Array.isArray(value) && !(value instanceof Set)) throw notA("an array or a set", value, where);
  return ["set", Array.from(value, (element) => encodeAtom(key, element, where))];
}

function entriesOf(value: unknown, where: string): readonly (readonly [string, unknown])[] {
  if (typeof value !== "object" || value === null) throw notA("a map or an object", value, where);
  return Object.entries(value);
}

const notA = (wanted: string, value: unknown, where: string): OvsdbError =>
  new OvsdbError(OvsdbCode.invalid, `Cannot write a transaction: "${where}" is ${show(value)}, wanted ${wanted}`);

/**
 * A column's value after a change as `update2` tells it (ovsdb-server(7), section 4.1.14): of a set the elements that
 * came or went, of a map the pairs that came, changed or, named with the value that they had, went.
 */
export function changedValue(type: ColumnType, before: Value, difference: Value): Value {
  if (before instanceof Set && difference instanceof Set) return before.symmetricDifference(difference);
  if (!(before instanceof Map) || !(difference instanceof Map) || type.shape !== "map") return difference;
  const after = new Map(before);
  for (const [key, value] of difference) {
    if (before.get(key) === value) after.delete(key);
    else after.set(key, value);
  }
  return after;
}

/** Whether two values of one column are the same; sets and maps have no order. */
export function sameValue(a: Value, b: Value): boolean {
  if (a instanceof Set && b instanceof Set) return a.size === b.size && [...a].every((element) => b.has(element));
  if (a instanceof Map && b instanceof Map)
    return a.size === b.size && [...a].every(([key, value]) => b.get(key) === value);
  return a === b;
}
