import { isObject, show } from "../../../shared/schema/json-fields.ts";
import {
  type ColumnType,
  decodeValue,
  defaultValue,
  encodeValue,
  mapOf,
  one,
  optional,
  refs,
  setOf,
  type Value,
  type ValueOf,
  type WritableOf,
} from "./columns.ts";
import { OvsdbCode, OvsdbError } from "./ovsdb-error.ts";
import { decodeAtom, MalformedValue, type Uuid } from "./values.ts";

const texts = mapOf("string", "string");

/**
 * The tables and columns of the database `Open_vSwitch` that an agent reads or writes: ovs-vswitchd.conf.db(5). A test
 * compares them with the schema that Debian installs.
 */
export const tables = {
  Open_vSwitch: {
    bridges: refs("Bridge"),
    manager_options: refs("Manager"),
    /** Incremented by clients that want to know when a change has been carried out. */
    next_cfg: one("integer"),
    /** The last `next_cfg` that ovs-vswitchd has carried out. */
    cur_cfg: one("integer"),
    external_ids: texts,
    other_config: texts,
    ovs_version: optional("string"),
    db_version: optional("string"),
    system_type: optional("string"),
    system_version: optional("string"),
    datapath_types: setOf("string"),
    iface_types: setOf("string"),
  },
  Bridge: {
    name: one("string"),
    ports: refs("Port"),
    controller: refs("Controller"),
    datapath_type: one("string"),
    /** As ovs-vswitchd has it, 16 hexadecimal digits; set by `other_config:datapath-id`. */
    datapath_id: optional("string"),
    datapath_version: one("string"),
    protocols: setOf("string"),
    /** `standalone` or `secure`. */
    fail_mode: optional("string"),
    mcast_snooping_enable: one("boolean"),
    flood_vlans: setOf("integer"),
    status: texts,
    external_ids: texts,
    other_config: texts,
  },
  Port: {
    name: one("string"),
    interfaces: refs("Interface"),
    tag: optional("integer"),
    trunks: setOf("integer"),
    vlan_mode: optional("string"),
    mac: optional("string"),
    status: texts,
    external_ids: texts,
    other_config: texts,
  },
  Interface: {
    name: one("string"),
    /** `""` or `system`: a network device; `internal`, `geneve`, `vxlan`, `patch`, … */
    type: one("string"),
    options: texts,
    /** Nothing before ovs-vswitchd has tried, -1 where it could not: `error` says why. */
    ofport: optional("integer"),
    ofport_request: optional("integer"),
    error: optional("string"),
    mac: optional("string"),
    mac_in_use: optional("string"),
    mtu: optional("integer"),
    mtu_request: optional("integer"),
    ifindex: optional("integer"),
    /** `up` or `down`. */
    admin_state: optional("string"),
    link_state: optional("string"),
    link_speed: optional("integer"),
    ingress_policing_rate: one("integer"),
    ingress_policing_burst: one("integer"),
    status: texts,
    statistics: mapOf("string", "integer"),
    external_ids: texts,
    other_config: texts,
  },
  Controller: {
    target: one("string"),
    connection_mode: optional("string"),
    is_connected: one("boolean"),
    role: optional("string"),
    max_backoff: optional("integer"),
    inactivity_probe: optional("integer"),
    enable_async_messages: optional("boolean"),
    status: texts,
    external_ids: texts,
    other_config: texts,
  },
  Manager: {
    target: one("string"),
    connection_mode: optional("string"),
    is_connected: one("boolean"),
    max_backoff: optional("integer"),
    inactivity_probe: optional("integer"),
    status: texts,
    external_ids: texts,
    other_config: texts,
  },
} as const satisfies Readonly<Record<string, Readonly<Record<string, ColumnType>>>>;

export type TableName = keyof typeof tables;
export type ColumnName<T extends TableName> = keyof (typeof tables)[T] & string;
export type TypeOf<T extends TableName, C extends ColumnName<T>> = (typeof tables)[T][C] extends infer Type extends
  ColumnType
  ? Type
  : never;

/** A row as it is read, with all of the table's columns or some. */
export type RowOf<T extends TableName, C extends ColumnName<T> = ColumnName<T>> = { readonly _uuid: Uuid } & {
  readonly [K in C]: ValueOf<TypeOf<T, K>>;
};

/** Columns to be written; those left out stay, or get their default in a new row. */
export type WritableRow<T extends TableName> = { readonly [K in ColumnName<T>]?: WritableOf<TypeOf<T, K>> };

/** A column by its name at run time. */
export function columnType(table: TableName, column: string): ColumnType | undefined {
  const columns: Readonly<Record<string, ColumnType>> = tables[table];
  return Object.hasOwn(columns, column) ? columns[column] : undefined;
}

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
 * A row from the server, which may leave out columns with default values. Unrequested columns are ignored.
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
