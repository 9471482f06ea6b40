import type { ColumnType } from "../../agent/protocols/ovsdb/columns.ts";
import { tables } from "../../agent/protocols/ovsdb/tables.ts";
import { isObject, show } from "../../shared/schema/json-fields.ts";

/**
 * Compares our tables with a database's schema (RFC 7047, section 3.2), such as `getSchema` answers: what a server of
 * another version lacks, or has otherwise. What it has beyond ours does not matter.
 * @returns a line per difference
 */
export function schemaDifferences(schema: unknown): readonly string[] {
  const theirs = isObject(schema) ? schema["tables"] : undefined;
  return Object.entries(tables).flatMap(([table, columns]) => {
    const found = memberOf(memberOf(theirs, table), "columns");
    if (found === undefined) return [`table ${table} is missing`];
    return Object.entries<ColumnType>(columns).flatMap(([column, ours]) => {
      const type = memberOf(memberOf(found, column), "type");
      if (type === undefined) return [`column ${table}.${column} is missing`];
      const [is, wanted] = [describe(type), describeOurs(ours)];
      return is === wanted ? [] : [`column ${table}.${column} is ${is}, wanted ${wanted}`];
    });
  });
}

const memberOf = (value: unknown, key: string): unknown =>
  isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;

function describeOurs({ shape, key, value, refTable }: ColumnType): string {
  return sentence(shape, refTable === undefined ? key : `${key} of ${refTable}`, value);
}

/** `<type>` in the same words. */
function describe(type: unknown): string {
  if (typeof type === "string") return sentence("one", type, undefined);
  const [key, value] = [baseOf(memberOf(type, "key")), memberOf(type, "value")];
  const [least, most] = [memberOf(type, "min") ?? 1, memberOf(type, "max") ?? 1];
  if (value !== undefined) return sentence("map", key, baseOf(value));
  // How few a set may have is the server's to hold.
  if (most === "unlimited" || (typeof most === "number" && most > 1)) return sentence("set", key, undefined);
  if (most !== 1 || (least !== 0 && least !== 1)) return show(type);
  return sentence(least === 0 ? "optional" : "one", key, undefined);
}

/** `<base-type>`. */
function baseOf(base: unknown): string {
  const type = typeof base === "string" ? base : memberOf(base, "type");
  const refTable = memberOf(base, "refTable");
  return refTable === undefined
    ? show(type).replaceAll('"', "")
    : `${show(type)} of ${String(refTable)}`.replaceAll('"', "");
}

const sentence = (shape: string, key: string, value: string | undefined): string =>
  value === undefined ? `${shape} ${key}` : `${shape} ${key} to ${value}`;
